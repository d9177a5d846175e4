/* SPDX-License-Identifier: MIT */
/*
 * overcommit=observed: what slices have used by the hour of the day is what is expected of them,
 * and a GPU takes more while that fits. In simulated time also for a day of 40 slices:
 *
 *     tests/prove -v build/unit/host-agent/test-observed | grep '# |'
 */
#include "host-agent/model/memory_use.h"
#include "host-agent/model/usage.h"
#include "host-agent/store/memory_table.h"
#include "host-agent/store/tables.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/recorded_host.h"
#include "tests/unit/host-agent/slices_kit.h"

#define MIB  (G_GUINT64_CONSTANT(1) << 20)
#define GIB  (G_GUINT64_CONSTANT(1) << 30)
#define HOUR USAGE_HOUR
#define DAY  (24 * HOUR)
/* 2026-11-21 00:00 UTC */
#define MIDNIGHT G_GINT64_CONSTANT(1795219200)

#define SLICE(n) "c0ffee00-0000-4000-8000-00000000000" n

static void test_memory_use(void)
{
    MemoryUse use = {0}, more = {0};

    g_assert_false(memory_use_is_known(&use));
    g_assert_cmpuint(memory_use_expect(&use), ==, 1);
    memory_use_add(&use, 0, HOUR);
    g_assert_true(memory_use_is_known(&use));
    g_assert_cmpuint(memory_use_expect(&use), ==, 1);
    /* What is always the same is known to the byte. */
    memory_use_add(&more, 10 * GIB, 99 * HOUR);
    g_assert_cmpuint(memory_use_expect(&more), ==, 11 * GIB);
    /* One in a hundred seconds does not count, one more does. */
    memory_use_add(&more, 30 * GIB, HOUR);
    g_assert_cmpuint(memory_use_expect(&more), >=, 11 * GIB);
    g_assert_cmpuint(memory_use_expect(&more), <, 14 * GIB);
    memory_use_add(&use, 30 * GIB, HOUR);
    memory_use_join(&use, &more);
    g_assert_cmpuint(memory_use_expect(&use), ==, 33 * GIB);
    /* Beyond the last step. */
    memory_use_add(&use, 1024 * GIB, 100 * HOUR);
    g_assert_cmpuint(memory_use_expect(&use), ==, 1024 * GIB + 1024 * GIB / 10);
}

/* Of time for which it is not known nothing counts; a rest is as the sample before it. */
static void test_usage(void)
{
    g_autoptr(Usage) usage = usage_new();
    g_autoptr(GPtrArray) rows = NULL;
    UsageSample now = {.uuid = SLICE("1"), .tenant = "", .gpu = "soft:a", .type = "native"};
    const UsageRow *row;

    usage_add(usage, &now, MIDNIGHT, 0);
    usage_add(usage, &now, MIDNIGHT + 60, 60);
    now.vram_known = TRUE;
    now.vram_used = 3 * GIB;
    usage_add(usage, &now, MIDNIGHT + 120, 60);
    usage_add_idle(usage, MIDNIGHT + 720, 600);
    now.unknown = TRUE;
    usage_add(usage, &now, MIDNIGHT + 780, 60);
    usage_add_idle(usage, MIDNIGHT + 1380, 600);
    rows = usage_take(usage);
    g_assert_cmpuint(rows->len, ==, 1);
    row = g_ptr_array_index(rows, 0);
    g_assert_cmpuint(row->seconds, ==, 1380);
    g_assert_cmpuint(row->memory.most, ==, 3 * GIB);
    g_assert_cmpuint(memory_use_expect(&row->memory), ==, 3 * GIB + 3 * GIB / 10);
}

static Db *meter_database(HostRoot *root)
{
    g_autoptr(GError) error = NULL;
    Db *db = db_open(root, &error);

    g_assert_no_error(error);
    db_free(db);
    db = db_open_meter(root, &error);
    g_assert_no_error(error);
    return db;
}

static void put(Db *db, const char *uuid, gint64 hour, guint64 bytes)
{
    MemoryUse use = {0};

    memory_use_add(&use, bytes, HOUR);
    g_assert_true(memory_table_add(db, uuid, hour, &use, NULL));
}

static guint64 expected_at(GVariant *all, const char *uuid, guint hour)
{
    g_autoptr(GVariant) hours = g_variant_lookup_value(all, uuid, G_VARIANT_TYPE("at"));
    guint64 bytes;

    if (!hours)
        return 0;
    g_variant_get_child(hours, hour, "t", &bytes);
    return bytes;
}

/* Seven days count, and each hour of the day for itself. */
static void test_days(void)
{
    HostRoot *root = file_tree_new();
    g_autoptr(Db) db = meter_database(root);
    g_autoptr(GVariant) first = NULL, later = NULL;

    put(db, SLICE("1"), MIDNIGHT + 8 * HOUR, 20 * GIB);
    put(db, SLICE("1"), MIDNIGHT + DAY + 8 * HOUR, 10 * GIB);
    put(db, SLICE("1"), MIDNIGHT + 20 * HOUR, GIB);
    put(db, SLICE("2"), MIDNIGHT + 20 * HOUR, 5 * GIB);
    put(db, SLICE("2"), MIDNIGHT + 20 * HOUR, 6 * GIB);
    first = memory_table_expect(db, MIDNIGHT + 7 * DAY, NULL);
    g_assert_cmpuint(expected_at(first, SLICE("1"), 8), ==, 22 * GIB);
    g_assert_cmpuint(expected_at(first, SLICE("1"), 9), ==, 0);
    g_assert_cmpuint(expected_at(first, SLICE("1"), 20), ==, GIB + GIB / 10);
    g_assert_cmpuint(expected_at(first, SLICE("2"), 20), ==, 6 * GIB + 6 * GIB / 10);
    g_assert_cmpuint(expected_at(first, SLICE("3"), 20), ==, 0);
    later = memory_table_expect(db, MIDNIGHT + 7 * DAY + 9 * HOUR, NULL);
    g_assert_cmpuint(expected_at(later, SLICE("1"), 8), ==, 11 * GIB);
    file_tree_free(root);
}

static guint count_hours(Db *db)
{
    g_autoptr(GVariant) all = memory_table_expect(db, MIDNIGHT + 20 * DAY, NULL);
    guint count = 0;

    for (guint hour = 0; hour < MEMORY_HOURS_OF_DAY; hour++)
        count += expected_at(all, SLICE("1"), hour) > 0;
    return count;
}

/* Hours beyond those that are needed are forgotten. */
static void test_prune(void)
{
    HostRoot *root = file_tree_new();
    g_autoptr(Db) db = meter_database(root);

    put(db, SLICE("1"), MIDNIGHT + 13 * DAY, GIB);
    for (guint i = 1; i < 8 * 24; i++)
        put(db, SLICE("2"), MIDNIGHT + 13 * DAY + i * HOUR, GIB);
    g_assert_true(memory_table_prune(db, NULL));
    g_assert_cmpuint(count_hours(db), ==, 1);
    put(db, SLICE("2"), MIDNIGHT + 21 * DAY, GIB);
    g_assert_true(memory_table_prune(db, NULL));
    g_assert_cmpuint(count_hours(db), ==, 0);
    file_tree_free(root);
}

/* On a host whose GPU of 16 GiB goes by what was used. */
static void open_observed(AgentOnBus *at)
{
    HostRoot *root = recorded_host_new("empty");

    complete_tree(root);
    file_tree_write(root, "/etc/vgpu/gpus.conf",
                    "[gpu soft:a]\nmode=shared\nvram=16G\novercommit=observed\n");
    agent_on_bus_open_tree(at, root);
}

#define CREATE "slice create --door native --gpu soft:a --class burstable --compute 1 "

/* It has used so much in the day before, but for what was after @last. */
static void has_used(const AgentOnBus *at, const char *uuid, guint64 bytes, guint hours)
{
    gint64 now = g_get_real_time() / G_USEC_PER_SEC / HOUR * HOUR;

    for (guint i = 1; i <= hours; i++)
        put(host_view_db(meter_view(at->meter)), uuid, now - i * HOUR, bytes);
    usage_sampler_tell_again(meter_usage(at->meter));
}

/* vgpud takes another slice when the two that it has are known to use a fourth of their memory. */
static void test_vgpud(void)
{
    AgentOnBus at;

    open_observed(&at);
    assert_says(CREATE "--vram 8G --uuid " SLICE("1"), 0, "", "");
    assert_says(CREATE "--vram 7G --uuid " SLICE("2"), 0, "", "");
    assert_says(CREATE "--vram 4G --uuid " SLICE("3"), 7, "",
                "204.8 MiB of 15.2 GiB are expected to be free at 00:00 UTC");
    has_used(&at, SLICE("1"), 2 * GIB, 23);
    assert_says(CREATE "--vram 4G --uuid " SLICE("3"), 7, "", "are expected to be free at");
    has_used(&at, SLICE("1"), 2 * GIB, 24);
    assert_says(CREATE "--vram 4G --uuid " SLICE("3"), 0, "", "");
    /* What is guaranteed counts as a whole, whatever it used. */
    assert_says("slice set " SLICE("1") " --class guaranteed", 7, "", "are expected to be free at");
    agent_on_bus_restart(&at);
    assert_says(CREATE "--vram 2G --uuid " SLICE("4"), 0, "", "");
    assert_says(CREATE "--vram 1G --uuid " SLICE("5"), 7, "", "are expected to be free at");
    agent_on_bus_close(&at);
}

/* The factor is an upper bound. */
static void test_bound(void)
{
    HostRoot *root = recorded_host_new("empty");
    AgentOnBus at;

    complete_tree(root);
    file_tree_write(root, "/etc/vgpu/gpus.conf",
                    "[gpu soft:a]\nmode=shared\nvram=16G\novercommit=observed,1.5\n");
    agent_on_bus_open_tree(&at, root);
    assert_says(CREATE "--vram 14G --uuid " SLICE("1"), 0, "", "");
    has_used(&at, SLICE("1"), GIB, 24);
    assert_says(CREATE "--vram 12G --uuid " SLICE("2"), 7, "", "10 GiB of 24 GiB are free");
    assert_says(CREATE "--vram 10G --uuid " SLICE("2"), 0, "", "");
    agent_on_bus_close(&at);
}

/**
 * Kind - a kind of slice of the simulated day
 * @limit: GiB that it may have; @low, @high: that it uses outside of and within its hours
 * @from, @to: these hours; equal: a minute of each hour
 */
typedef struct {
    const char *name;
    SliceClass class;
    guint limit, low, high, from, to;
} Kind;

static const Kind kinds[] = {
    {"service by day", SLICE_BURSTABLE, 40, 4, 34, 8, 20},
    {"service by night", SLICE_BURSTABLE, 40, 4, 34, 20, 8},
    {"bursts", SLICE_BURSTABLE, 30, 3, 24, 0, 0},
    {"guaranteed", SLICE_GUARANTEED, 16, 11, 15, 9, 18},
    {"training, best effort", SLICE_BEST_EFFORT, 30, 20, 22, 0, 0},
};

#define KINDS    G_N_ELEMENTS(kinds)
#define SLICES   (8 * KINDS)
#define CARD_GIB 80

static gboolean is_high(const Kind *kind, guint minute)
{
    guint hour = minute / 60 % 24;

    if (kind->from == kind->to)
        return minute % 60 == 7;
    if (kind->from < kind->to)
        return hour >= kind->from && hour < kind->to;
    return hour >= kind->from || hour < kind->to;
}

/* Up to a twentieth more or less, as no day is like another. */
static guint64 use_of(const Kind *kind, guint minute, GRand *random)
{
    guint64 bytes = (is_high(kind, minute) ? kind->high : kind->low) * GIB;

    return bytes - bytes / 20 + (guint64)(g_rand_double(random) * (double)bytes / 10);
}

static char *uuid_of(guint slice)
{
    return g_strdup_printf("c0ffee00-0000-4000-8000-%012u", slice);
}

static void record_days(Db *db, GRand *random)
{
    g_autoptr(Usage) usage = usage_new();

    /* A sample is at the end of its minute. */
    for (guint minute = 0; minute <= MEMORY_DAYS * 24 * 60; minute++) {
        for (guint i = 0; i < SLICES; i++) {
            g_autofree char *uuid = uuid_of(i);

            usage_add(
                usage,
                &(UsageSample){.uuid = uuid,
                               .tenant = "",
                               .gpu = "soft:a",
                               .type = "native",
                               .vram_used = use_of(&kinds[i % KINDS], MAX(minute, 1) - 1, random),
                               .vram_known = TRUE},
                MIDNIGHT + 60 * minute, minute ? 60 : 0);
        }
        if (minute % 60 == 0) {
            g_autoptr(GPtrArray) rows = usage_take(usage);

            g_assert_true(usage_table_add(db, rows, NULL));
        }
    }
}

/* First fit, the largest first; the cards that it takes. @card: of each slice. */
static guint place_slices(GVariant *expected, gboolean observed, guint *card)
{
    Room rooms[SLICES] = {0};
    guint count = 0;

    for (guint gib = CARD_GIB; gib; gib--)
        for (guint i = 0; i < SLICES; i++) {
            const Kind *kind = &kinds[i % KINDS];
            g_autofree char *uuid = uuid_of(i);
            g_autoptr(Slice) slice = slice_new(uuid, "soft:a", "");

            if (kind->limit != gib)
                continue;
            slice->class = kind->class;
            slice->vram = gib * GIB;
            for (guint hour = 0; observed && hour < MEMORY_HOURS_OF_DAY; hour++)
                slice->expected[hour] = expected_at(expected, uuid, hour);
            for (card[i] = 0;; card[i]++) {
                Room *room = &rooms[card[i]];
                g_autofree char *why = NULL;

                room->vram = CARD_GIB * GIB;
                room->capacity = room->vram * (observed ? 4 : 1);
                room->observed = observed;
                why = room_refusal(room, slice);
                if (why)
                    continue;
                room_add(room, slice);
                break;
            }
            count = MAX(count, card[i] + 1);
        }
    return count;
}

/* The minutes of the eighth day in which what is used on a card is more than it has. */
static guint count_full(const guint *card, GRand *random, double *most)
{
    guint full = 0;

    for (guint minute = 0; minute < 24 * 60; minute++) {
        guint64 used[SLICES] = {0};

        for (guint i = 0; i < SLICES; i++)
            used[card[i]] += use_of(&kinds[i % KINDS], minute, random);
        for (guint i = 0; i < SLICES; i++) {
            *most = MAX(*most, (double)used[i] / (double)(CARD_GIB * GIB));
            full += used[i] > CARD_GIB * GIB;
        }
    }
    return full;
}

/* The day of 40 slices: cards that they need by their limits, and by what they were seen to use. */
static void test_day(void)
{
    HostRoot *root = file_tree_new();
    g_autoptr(Db) db = meter_database(root);
    g_autoptr(GRand) random = g_rand_new_with_seed(1);
    g_autoptr(GVariant) expected = NULL;
    guint card[SLICES], by_limit, by_use, full;
    double most = 0;

    record_days(db, random);
    expected = memory_table_expect(db, MIDNIGHT + MEMORY_DAYS * DAY, NULL);
    by_limit = place_slices(expected, FALSE, card);
    by_use = place_slices(expected, TRUE, card);
    full = count_full(card, random, &most);
    g_test_message("| 40 slices, cards of %u GiB | cards | most of a card that is used | minutes "
                   "in which a card is full |",
                   CARD_GIB);
    g_test_message("| --- | --- | --- | --- |");
    g_test_message("| by their limits | %u | | 0 |", by_limit);
    g_test_message("| overcommit=observed, the eighth day | %u | %.2f | %u |", by_use, most, full);
    g_assert_cmpuint(full, ==, 0);
    g_assert_cmpuint(by_use, <, by_limit);
    file_tree_free(root);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/observed/memory-use", test_memory_use);
    g_test_add_func("/observed/usage", test_usage);
    g_test_add_func("/observed/days", test_days);
    g_test_add_func("/observed/prune", test_prune);
    g_test_add_func("/observed/vgpud", test_vgpud);
    g_test_add_func("/observed/bound", test_bound);
    g_test_add_func("/observed/day", test_day);
    return g_test_run();
}
