// SPDX-License-Identifier: MIT
/* Memory that processes of a slice share, and what else is in its ledger: an arbiter and members as
 * they are, which die and come back. */
#include "ledger.h"
#include "live.h"

#include <signal.h>

static const char *const two_slices[] = {"a", "[slice]\nvram=1000000\n", "b", "[slice]\n", NULL};

/* What stands for the memory that the processes of these tests share. */
static struct governor_object shared_object(void)
{
    return (struct governor_object){.device = 5, .inode = 77};
}

/* Exports at once; frees when it is told to. */
static void export_one(struct live *live, const char *socket_path, struct live_report *report)
{
    static struct governor_object object;
    GovernorMember *member = governor_member_new(socket_path, true);

    (void)live;
    g_assert_nonnull(member);
    object = shared_object();
    g_assert_cmpint(governor_member_reserve(member, 600000, false), ==, GOVERNOR_MEMORY_DEVICE);
    governor_member_export(member, &object, 600000, GOVERNOR_MEMORY_DEVICE);
    report->ready = 1;
    while (!report->go)
        g_usleep(1000);
    governor_member_forget(member, &object);
    report->done = 1;
}

static void import_one(struct live *live, const char *socket_path, struct live_report *report)
{
    static struct governor_object object;
    GovernorMember *member = governor_member_new(socket_path, true);

    (void)live;
    g_assert_nonnull(member);
    object = shared_object();
    report->granted = governor_member_import(member, &object, 600000);
    report->ready = 1;
    while (!report->go)
        g_usleep(1000);
    governor_member_forget(member, &object);
    report->done = 1;
}

static unsigned import_in(struct live *live, const char *slice)
{
    unsigned member = live_spawn(live, slice, import_one);

    live_await_ready(live, member);
    return member;
}

/*
 * Charged once for a slice, until the last of its processes has ended; another slice is charged on
 * its own.
 */
static void test_export_import(void)
{
    struct live live;
    unsigned exporter, importer, last;

    live_open(&live, two_slices);
    exporter = live_spawn(&live, "a", export_one);
    live_await_ready(&live, exporter);
    importer = import_in(&live, "a");
    /* Twice that would be beyond the limit. */
    g_assert_cmpuint(live.reports[importer].granted, ==, 1);
    g_assert_cmpint(live_status(&live, "a", "vram_used"), ==, 600000);
    live_kill(&live, exporter, SIGKILL);
    live_await(&live, "a", "members", 1);
    g_assert_cmpint(live_status(&live, "a", "vram_used"), ==, 600000);
    /* From an importer to the next. */
    last = import_in(&live, "a");
    live.reports[importer].go = 1;
    live_kill(&live, importer, SIGKILL);
    live_await(&live, "a", "members", 1);
    g_assert_cmpint(live_status(&live, "a", "vram_used"), ==, 600000);
    import_in(&live, "b");
    g_assert_cmpint(live_status(&live, "b", "vram_used"), ==, 600000);
    live.reports[last].go = 1;
    live_await(&live, "a", "vram_used", 0);
    g_assert_cmpint(live_status(&live, "a", "members"), ==, 1);
    g_assert_cmpint(live_status(&live, "b", "vram_used"), ==, 600000);
    live_close(&live);
}

/* All holders declare an object to the next arbiter, which charges it once. */
static void test_export_restart(void)
{
    static const int signals[] = {SIGKILL, SIGTERM, SIGKILL};
    struct live live;
    unsigned exporter, importers[2];

    live_open(&live, two_slices);
    exporter = live_spawn(&live, "a", export_one);
    live_await_ready(&live, exporter);
    importers[0] = import_in(&live, "a");
    live_spawn(&live, "a", live_hold);
    live_await_ready(&live, 2);
    for (gsize i = 0; i < G_N_ELEMENTS(signals); i++) {
        live_kill_arbiter(&live, signals[i]);
        g_usleep(100000);
        live_start_arbiter(&live);
        live_await(&live, "a", "members", 3);
        live_await(&live, "a", "vram_used", 601000);
    }
    live_kill_arbiter(&live, SIGKILL);
    live_kill(&live, exporter, SIGKILL);
    live_start_arbiter(&live);
    /* While the arbiter waits for all to come back: it knows of the object by then. */
    importers[1] = import_in(&live, "a");
    g_assert_cmpuint(live.reports[importers[1]].granted, ==, 1);
    live_await(&live, "a", "vram_used", 601000);
    live.reports[importers[0]].go = 1;
    g_usleep(50000);
    g_assert_cmpint(live_status(&live, "a", "vram_used"), ==, 601000);
    live_kill(&live, importers[1], SIGKILL);
    live_await(&live, "a", "vram_used", 1000);
    live_close(&live);
}

/*
 * It has 200,000 of the slice's million for itself: in turn, three of 100,001 need what is
 * returned.
 */
static void reserve_and_export(struct live *live, const char *socket_path,
                               struct live_report *report)
{
    static struct governor_object object, known;
    GovernorMember *member = governor_member_new(socket_path, true);

    (void)live;
    g_assert_nonnull(member);
    known = shared_object();
    g_assert_true(governor_member_import(member, &known, 600000));
    report->ready = 1;
    while (!report->go)
        g_usleep(1000);
    for (uint64_t inode = 1; inode < 4; inode++) {
        object = (struct governor_object){.device = 1, .inode = inode};
        if (governor_member_reserve(member, 100001, false) != GOVERNOR_MEMORY_DEVICE)
            break;
        governor_member_export(member, &object, 100001, GOVERNOR_MEMORY_DEVICE);
        governor_member_forget(member, &object);
        report->granted++;
    }
    governor_member_forget(member, &known);
    object = (struct governor_object){.device = 1, .inode = 9};
    g_assert_cmpint(governor_member_reserve(member, 200001, false), ==, GOVERNOR_MEMORY_NONE);
    g_assert_true(governor_member_import(member, &object, 100000));
    /* What it is larger than was known; there is no room for all of it once more. */
    g_assert_false(governor_member_import(member, &object, 200001));
    g_assert_true(governor_member_import(member, &object, 150000));
    report->done = 1;
}

/* Without an arbiter: charged to each importer, from its own part; once again when it is back. */
static void test_export_alone(void)
{
    struct live live;
    unsigned holder, exporter;

    live_open(&live, two_slices);
    holder = live_spawn(&live, "a", import_one);
    live_await_ready(&live, holder);
    exporter = live_spawn(&live, "a", reserve_and_export);
    live_await_ready(&live, exporter);
    live_kill_arbiter(&live, SIGKILL);
    live.reports[exporter].go = 1;
    live_await_word(&live.reports[exporter].done, 1);
    /* Exported without an arbiter is freed into the part that it was of; what others may have is
     * not. */
    g_assert_cmpuint(live.reports[exporter].granted, ==, 3);
    live_start_arbiter(&live);
    live_await(&live, "a", "members", 2);
    live_await(&live, "a", "vram_used", 600000 + 150000);
    live_close(&live);
}

#define MANY (LEDGER_MEMBER_OBJECTS + 50)

/* More objects than are remembered of one: half of them its own, half imported. */
static void share_many(struct live *live, const char *socket_path, struct live_report *report)
{
    static struct governor_object objects[MANY];
    GovernorMember *member = governor_member_new(socket_path, true);

    (void)live;
    g_assert_nonnull(member);
    for (unsigned i = 0; i < MANY; i++) {
        objects[i] = (struct governor_object){.device = 3, .inode = i};
        if (i % 2) {
            g_assert_true(governor_member_import(member, &objects[i], 10));
            continue;
        }
        g_assert_cmpint(governor_member_reserve(member, 10, false), ==, GOVERNOR_MEMORY_DEVICE);
        governor_member_export(member, &objects[i], 10, GOVERNOR_MEMORY_DEVICE);
    }
    report->ready = 1;
    while (!report->go)
        g_usleep(1000);
    for (unsigned i = 0; i < MANY; i++)
        governor_member_forget(member, &objects[i]);
    report->done = 1;
}

/*
 * Objects that are not remembered are charged to each; nothing is lost or stays, also over a
 * restart.
 */
static void test_export_many(void)
{
    struct live live;

    live_open(&live, two_slices);
    for (unsigned i = 0; i < 2; i++) {
        live_spawn(&live, "a", share_many);
        live_await_ready(&live, i);
    }
    g_assert_cmpint(live_status(&live, "a", "vram_used"), ==,
                    10 * (MANY + MANY - LEDGER_MEMBER_OBJECTS));
    live_kill_arbiter(&live, SIGKILL);
    live_start_arbiter(&live);
    live_await(&live, "a", "members", 2);
    /* Both name what they got last first. */
    live_await(&live, "a", "vram_used", 10 * (MANY + MANY - LEDGER_MEMBER_OBJECTS));
    live.reports[0].go = 1;
    live_await(&live, "a", "vram_used", 10 * MANY);
    live.reports[1].go = 1;
    live_await(&live, "a", "vram_used", 0);
    g_assert_cmpint(live_status(&live, "a", "members"), ==, 2);
    live_close(&live);
}

static void assert_spill_kind(const struct live *live, const char *slice, const char *kind)
{
    g_autofree char *seen = live_status_text(live, slice, "spill_kind");

    g_assert_cmpstr(seen, ==, kind);
}

/* More than the slice's 1000, of which the rest is spilled. */
static void spill(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member = governor_member_new(socket_path, true);

    (void)live;
    g_assert_nonnull(member);
    g_assert_cmpint(governor_member_reserve(member, 900, true), ==, GOVERNOR_MEMORY_DEVICE);
    g_assert_cmpint(governor_member_reserve(member, 900, false), ==, GOVERNOR_MEMORY_NONE);
    g_assert_cmpint(governor_member_reserve(member, 300, true), ==, GOVERNOR_MEMORY_SPILL);
    g_assert_cmpint(governor_member_reserve(member, 300, true), ==, GOVERNOR_MEMORY_NONE);
    report->ready = 1;
    while (!report->go)
        g_usleep(1000);
    governor_member_pages(member);
    governor_member_driver(member, 40);
    governor_member_driver(member, 50);
    report->done = 1;
}

/* Where memory beyond the limit goes, and how much has gone there; a driver's own memory. */
static void test_spill(void)
{
    const char *const slices[] = {"a", "[slice]\nvram=1000\nspill=500\n", "b",
                                  "[slice]\nvram=1000\n", NULL};
    struct live live;

    live_open(&live, slices);
    assert_spill_kind(&live, "b", "none");
    live_spawn(&live, "a", spill);
    live_await_ready(&live, 0);
    g_assert_cmpint(live_status(&live, "a", "spill_limit"), ==, 500);
    g_assert_cmpint(live_status(&live, "a", "spill_used"), ==, 300);
    g_assert_cmpint(live_status(&live, "a", "vram_used"), ==, 900);
    assert_spill_kind(&live, "a", "spill");
    live.reports[0].go = 1;
    live_await_word(&live.reports[0].done, 1);
    assert_spill_kind(&live, "a", "driver");
    live_await(&live, "a", "vram_driver", 50);
    live_await(&live, "a", "vram_used", 950);
    live_kill_arbiter(&live, SIGKILL);
    live_start_arbiter(&live);
    live_await(&live, "a", "spill_used", 300);
    live_await(&live, "a", "vram_driver", 50);
    live_await(&live, "a", "vram_used", 950);
    assert_spill_kind(&live, "a", "driver");
    live_kill(&live, 0, SIGKILL);
    live_await(&live, "a", "spill_used", 0);
    live_close(&live);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/objects/export-import", test_export_import);
    g_test_add_func("/governor/objects/export-restart", test_export_restart);
    g_test_add_func("/governor/objects/export-alone", test_export_alone);
    g_test_add_func("/governor/objects/export-many", test_export_many);
    g_test_add_func("/governor/objects/spill", test_spill);
    return g_test_run();
}
