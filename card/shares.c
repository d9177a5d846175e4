/* SPDX-License-Identifier: MIT */
/*
 * Whether shares, caps and memory limits hold on this GPU, measured by finished work, each compared
 * with the same run without a governor: a result that holds there, too, proves nothing. Also the
 * cost of a submission of a lone program.
 */
#include "card.h"
#include "numbers.h"
#include "place.h"

#include <stdlib.h>

#define TENANTS  2
#define BATCH_MS "2"
#define SECONDS  "6"
/* The start of a run, which is not counted: first contention, first estimates. */
#define SETTLE_S    1.0
#define END_S       6.0
#define START_IN_NS (50 * G_TIME_SPAN_MILLISECOND * 1000)
#define MEMORY_MIB  "256"
#define COST_TURNS  3
#define RESTLESS    0.8

static const Slice shared[TENANTS] = {{"small", "weight=20"}, {"large", "weight=80"}};
static const Slice capped = {"capped", "weight=100\ncap=20\nhard=true"};
static const Slice little = {"little", "weight=100\nvram=268435456"};
static const Slice alone = {"alone", "weight=100"};

/* Batches a second that ended between SETTLE_S and END_S. */
static double rate_of(JsonObject *result)
{
    JsonArray *ends = json_object_get_array_member(result, "ends_us");
    guint done = 0;

    for (guint i = 0; i < json_array_get_length(ends); i++) {
        double at = json_array_get_double_element(ends, i) / 1e6;

        done += at > SETTLE_S && at <= END_S;
    }
    return done / (END_S - SETTLE_S);
}

static gboolean finish_tenant(Program *tenant, double *rate, GError **error)
{
    g_autofree char *text = program_finish(tenant, error);
    g_autoptr(JsonObject) result = text ? object_of(text, error) : NULL;

    if (!result)
        return FALSE;
    *rate = rate_of(result);
    return TRUE;
}

/* @count tenants that begin at the same time, each in the slice of its number; their rates. */
static gboolean run_tenants(const Place *place, guint count, const char *iterations, double *rates,
                            GError **error)
{
    const char *const args[] = {"closed", "--iterations", iterations, "--seconds",
                                SECONDS,  "--wait",       NULL};
    Program *tenants[TENANTS] = {NULL};
    g_autofree char *start = NULL;
    gboolean ok = TRUE;

    for (guint i = 0; ok && i < count; i++) {
        g_autofree char *ready = NULL;

        tenants[i] = place_start(place, i, TOOL_LOAD, args, error);
        ready = tenants[i] ? program_line(tenants[i], error) : NULL;
        ok = ready != NULL;
    }
    start = g_strdup_printf("%" G_GINT64_FORMAT "\n",
                            g_get_monotonic_time() * 1000 + (gint64)START_IN_NS);
    for (guint i = 0; ok && i < count; i++)
        ok = program_tell(tenants[i], start, error);
    for (guint i = 0; i < count; i++) {
        ok = ok && finish_tenant(tenants[i], &rates[i], error);
        program_free(tenants[i]);
    }
    return ok;
}

/* Results of @slices in a place of @kind; a place is made for each run. */
static gboolean run_slices(Card *card, PlaceKind kind, const Slice *slices, guint count,
                           const char *iterations, double *rates, GError **error)
{
    g_autoptr(Place) place = place_open(card, kind, slices, count, error);

    return place && run_tenants(place, count, iterations, rates, error);
}

static void add_row(Card *card, const char *name, const char *unit, const char *expected,
                    double value, double without)
{
    JsonObject *row = json_object_new();

    json_object_set_string_member(row, "row", name);
    json_object_set_string_member(row, "unit", unit);
    json_object_set_string_member(row, "expected", expected);
    json_object_set_double_member(row, "with", value);
    json_object_set_double_member(row, "without", without);
    json_array_add_object_element(card_list(card, "governor"), row);
}

static gboolean measure_share(Card *card, const char *iterations, GError **error)
{
    double with[TENANTS], without[TENANTS];

    card_say("shares: 20 and 80");
    if (!run_slices(card, PLACE_NATIVE, shared, TENANTS, iterations, without, error) ||
        !run_slices(card, PLACE_GOVERNED, shared, TENANTS, iterations, with, error))
        return FALSE;
    add_row(card, "weight 20 beside weight 80", "% of what both did", "20",
            100 * with[0] / (with[0] + with[1]), 100 * without[0] / (without[0] + without[1]));
    return TRUE;
}

/*
 * The same work natively, before and after: if they differ much, something else used the GPU or the
 * processors.
 */
static void check_rest(Card *card, double before, double after)
{
    double part = MIN(before, after) / MAX(before, after);

    if (part < RESTLESS)
        card_failed(card, "cap",
                    g_error_new(G_IO_ERROR, G_IO_ERROR_BUSY,
                                "the same work ran %.0f %% slower a few seconds earlier or later, "
                                "so something else used "
                                "the GPU or the processors; measure again when nothing does",
                                100 * (1 - part)));
}

static gboolean measure_cap(Card *card, const char *iterations, GError **error)
{
    double with, without, before, after;

    card_say("cap: 20 %%");
    if (!run_slices(card, PLACE_NATIVE, &alone, 1, iterations, &before, error) ||
        !run_slices(card, PLACE_GOVERNED, &capped, 1, iterations, &with, error) ||
        !run_slices(card, PLACE_GOVERNED, &alone, 1, iterations, &without, error) ||
        !run_slices(card, PLACE_NATIVE, &alone, 1, iterations, &after, error))
        return FALSE;
    check_rest(card, before, after);
    add_row(card, "hard cap of 20 %, nobody else there", "% of what it does natively", "20",
            200 * with / (before + after), 200 * without / (before + after));
    return TRUE;
}

/* MiB that a program can allocate in a slice, in steps of 16. */
static double memory_given(Card *card, PlaceKind kind, GError **error)
{
    const char *const args[] = {"memory", NULL};
    g_autoptr(Place) place = place_open(card, kind, &little, 1, error);
    g_autofree char *text = place ? place_run(place, 0, TOOL_BENCH, args, error) : NULL;
    g_autoptr(JsonObject) row = text ? object_of(text, error) : NULL;

    return row ? json_array_get_double_element(json_object_get_array_member(row, "samples"), 0)
               : -1;
}

static gboolean measure_memory(Card *card, const char *iterations, GError **error)
{
    double with, without;

    (void)iterations;
    card_say("memory: a limit of " MEMORY_MIB " MiB");
    without = memory_given(card, PLACE_NATIVE, error);
    with = without < 0 ? -1 : memory_given(card, PLACE_GOVERNED, error);
    if (with < 0)
        return FALSE;
    add_row(card, "limit of " MEMORY_MIB " MiB", "MiB that a program gets", "at most " MEMORY_MIB,
            with, without);
    return TRUE;
}

static gboolean submit_cost(const Place *place, GArray *costs, GError **error)
{
    const char *const args[] = {"submit-cost", "--batches", "20000", NULL};
    g_autofree char *text = place_run(place, 0, TOOL_LOAD, args, error);
    g_autoptr(JsonObject) result = text ? object_of(text, error) : NULL;
    double cost;

    if (!result)
        return FALSE;
    cost = json_object_get_double_member(result, "submit_ns");
    g_array_append_val(costs, cost);
    return TRUE;
}

static gboolean measure_cost(Card *card, const char *iterations, GError **error)
{
    g_autoptr(GArray) with = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(GArray) without = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(Place) native = place_open(card, PLACE_NATIVE, &alone, 1, error);
    g_autoptr(Place) governed = native ? place_open(card, PLACE_GOVERNED, &alone, 1, error) : NULL;

    (void)iterations;
    card_say("cost of a submit");
    for (guint turn = 0; governed && turn < COST_TURNS; turn++) {
        if (!submit_cost(native, without, error) || !submit_cost(governed, with, error))
            return FALSE;
    }
    if (!governed)
        return FALSE;
    add_row(card, "a submit, alone", "ns of processor time", "at most 300 more",
            values_quantile(with, 0.5), values_quantile(without, 0.5));
    return TRUE;
}

/* Iterations of a batch. */
static char *calibrate_batch(Card *card, GError **error)
{
    const char *const args[] = {"calibrate", "--ms", BATCH_MS, NULL};
    g_autoptr(Place) place = place_open(card, PLACE_NATIVE, &alone, 1, error);
    g_autofree char *text = place ? place_run(place, 0, TOOL_LOAD, args, error) : NULL;
    g_autoptr(JsonObject) result = text ? object_of(text, error) : NULL;

    if (!result)
        return NULL;
    return g_strdup_printf("%" G_GINT64_FORMAT, json_object_get_int_member(result, "iterations"));
}

void shares_measure(Card *card)
{
    static const struct {
        const char *what;
        gboolean (*measure)(Card *card, const char *iterations, GError **error);
    } parts[] = {{"shares", measure_share},
                 {"cap", measure_cap},
                 {"memory", measure_memory},
                 {"cost of a submit", measure_cost}};
    GError *error = NULL;
    g_autofree char *iterations = calibrate_batch(card, &error);

    if (!iterations) {
        card_failed(card, "the governor", error);
        return;
    }
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        g_clear_error(&error);
        if (!parts[i].measure(card, iterations, &error))
            card_failed(card, parts[i].what, g_steal_pointer(&error));
    }
}
