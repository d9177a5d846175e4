/* SPDX-License-Identifier: MIT */
/*
 * The rows of tests/bench/RESULTS.md that need no VM, in the three places in turn, so that a
 * machine that becomes slower does so for all of them; and whether the results there are right.
 */
#include "card.h"
#include "numbers.h"
#include "place.h"

/* One slice, without limits. */
static const Slice alone = {"alone", "weight=100"};

/* Rows in vk-bench's names and order. */
static const char *const rows[] = {"heavy",       "dispatch-2ms", "tiny",     "burst",
                                   "first-touch", "upload",       "download", "context"};

#define NUM_ROWS G_N_ELEMENTS(rows)

/**
 * Speeds
 * @places: NULL if one is not available
 * @light: vk-bench's option that gives all places the same work
 * @medians: of each round, by row
 * @units: of the rows, once they are known
 */
typedef struct {
    Card *card;
    Place *places[NUM_PLACES];
    char *light;
    GArray *medians[NUM_ROWS][NUM_PLACES];
    char *units[NUM_ROWS];
} Speeds;

static void open_places(Speeds *speeds)
{
    for (int kind = 0; kind < NUM_PLACES; kind++) {
        GError *error = NULL;

        speeds->places[kind] = place_open(speeds->card, kind, &alone, 1, &error);
        if (error)
            card_failed(speeds->card, place_names[kind], error);
    }
}

/* Ordinary programs: each element of the GPU's results is checked. */
static void check_results(Speeds *speeds)
{
    const char *const args[] = {"--rounds", "3", "--size", "65536", NULL};
    JsonArray *list = card_list(speeds->card, "correct");

    for (int kind = 0; kind < NUM_PLACES; kind++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = NULL;
        JsonObject *object = json_object_new();

        if (!speeds->places[kind]) {
            json_object_unref(object);
            continue;
        }
        card_say("results: %s", place_names[kind]);
        text = place_run(speeds->places[kind], 0, TOOL_COMPUTE, args, &error);
        json_object_set_string_member(object, "place", place_names[kind]);
        json_object_set_boolean_member(object, "right", text != NULL);
        if (error)
            json_object_set_string_member(object, "why", error->message);
        json_array_add_object_element(list, object);
        if (!text)
            g_clear_pointer(&speeds->places[kind], place_free);
    }
}

static gboolean calibrate_speeds(Speeds *speeds, GError **error)
{
    const char *const args[] = {"calibrate", NULL};
    g_autofree char *text = place_run(speeds->places[PLACE_NATIVE], 0, TOOL_BENCH, args, error);
    g_autoptr(JsonObject) row = text ? object_of(text, error) : NULL;

    if (!row)
        return FALSE;
    speeds->light = g_strdup_printf(
        "%.0f", json_array_get_double_element(json_object_get_array_member(row, "samples"), 0));
    return TRUE;
}

static void take_row(Speeds *speeds, PlaceKind kind, JsonObject *row)
{
    const char *name = json_object_get_string_member(row, "row");
    JsonArray *samples = json_object_get_array_member(row, "samples");
    g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(double));
    double median;

    for (guint i = 0; i < json_array_get_length(samples); i++) {
        double value = json_array_get_double_element(samples, i);

        g_array_append_val(values, value);
    }
    median = values_quantile(values, 0.5);
    for (guint i = 0; i < NUM_ROWS; i++) {
        if (!g_str_equal(rows[i], name))
            continue;
        g_array_append_val(speeds->medians[i][kind], median);
        if (!speeds->units[i])
            speeds->units[i] = g_strdup(json_object_get_string_member(row, "unit"));
    }
}

static gboolean measure_place(Speeds *speeds, PlaceKind kind, GError **error)
{
    const char *args[NUM_ROWS + 3] = {"--light", speeds->light};
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;

    for (guint i = 0; i < NUM_ROWS; i++)
        args[i + 2] = rows[i];
    text = place_run(speeds->places[kind], 0, TOOL_BENCH, args, error);
    if (!text)
        return FALSE;
    lines = g_strsplit(g_strchomp(text), "\n", -1);
    for (char **line = lines; *line; line++) {
        g_autoptr(JsonObject) row = object_of(*line, error);

        if (!row)
            return FALSE;
        take_row(speeds, kind, row);
    }
    return TRUE;
}

static void measure_round(Speeds *speeds, guint round)
{
    for (guint i = 0; i < NUM_PLACES; i++) {
        PlaceKind kind = (round + i) % NUM_PLACES;
        GError *error = NULL;

        if (!speeds->places[kind])
            continue;
        card_say("speed: round %u of %u, %s", round + 1, speeds->card->rounds, place_names[kind]);
        if (measure_place(speeds, kind, &error))
            continue;
        card_failed(speeds->card, place_names[kind], error);
        g_clear_pointer(&speeds->places[kind], place_free);
    }
}

static void write_rows(Speeds *speeds)
{
    JsonArray *list = card_list(speeds->card, "speed");

    for (guint i = 0; i < NUM_ROWS; i++) {
        JsonObject *row = json_object_new();

        json_object_set_string_member(row, "row", rows[i]);
        json_object_set_string_member(row, "unit", speeds->units[i] ? speeds->units[i] : "");
        for (int kind = 0; kind < NUM_PLACES; kind++) {
            if (speeds->medians[i][kind]->len)
                json_object_set_object_member(row, place_names[kind],
                                              summary_of(speeds->medians[i][kind]));
        }
        json_array_add_object_element(list, row);
    }
}

static void speeds_clear(Speeds *speeds)
{
    for (int kind = 0; kind < NUM_PLACES; kind++) {
        place_free(speeds->places[kind]);
        for (guint i = 0; i < NUM_ROWS; i++)
            g_array_unref(speeds->medians[i][kind]);
    }
    for (guint i = 0; i < NUM_ROWS; i++)
        g_free(speeds->units[i]);
    g_free(speeds->light);
}

void speed_measure(Card *card)
{
    Speeds speeds = {.card = card};
    GError *error = NULL;

    for (guint i = 0; i < NUM_ROWS; i++) {
        for (int kind = 0; kind < NUM_PLACES; kind++)
            speeds.medians[i][kind] = g_array_new(FALSE, FALSE, sizeof(double));
    }
    open_places(&speeds);
    check_results(&speeds);
    if (!speeds.places[PLACE_NATIVE])
        error = g_error_new(G_IO_ERROR, G_IO_ERROR_FAILED, "this GPU does not compute natively");
    else if (calibrate_speeds(&speeds, &error)) {
        for (guint round = 0; round < card->rounds; round++)
            measure_round(&speeds, round);
        write_rows(&speeds);
    }
    if (error)
        card_failed(card, "speed", error);
    speeds_clear(&speeds);
}
