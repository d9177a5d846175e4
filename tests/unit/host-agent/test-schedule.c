/* SPDX-License-Identifier: MIT */
/* Modes by the clock: when an entry is due, whatever the clock does, and that it is applied. */
#include <gio/gio.h>
#include <string.h>

#include "host-agent/model/timetable.h"
#include "lib/conf.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/fake_kernel.h"

#define GPU  "0000:02:00.0"
#define ZONE "Europe/Berlin"

static GDateTime *at(const char *text)
{
    g_autoptr(GTimeZone) zone = g_time_zone_new_identifier(ZONE);
    GDateTime *time = NULL;

    g_assert_nonnull(zone);
    time = g_date_time_new_from_iso8601(text, zone);
    g_assert_nonnull(time);
    return time;
}

static GPtrArray *load(const char *text, GError **error)
{
    HostRoot *root = file_tree_new();
    GPtrArray *entries;

    file_tree_write(root, SCHEDULE_CONF, text);
    entries = timetable_load(root, error);
    file_tree_free(root);
    return entries;
}

/* An entry with these times and days. */
static GPtrArray *one(const char *time, const char *days)
{
    g_autofree char *text =
        g_strdup_printf("[at x]\ngpu=" GPU "\nmode=shared\ntime=%s\ndays=%s\n", time, days);
    g_autoptr(GError) error = NULL;
    GPtrArray *entries = load(text, &error);

    g_assert_no_error(error);
    return entries;
}

static void assert_next(const char *time, const char *days, const char *after, const char *expected)
{
    g_autoptr(GPtrArray) entries = one(time, days);
    g_autoptr(GDateTime) from = at(after);
    g_autoptr(GDateTime) next = timetable_next(g_ptr_array_index(entries, 0), from);
    g_autofree char *text = g_date_time_format(next, "%FT%T%:z");

    g_assert_cmpstr(text, ==, expected);
}

static void assert_last(const char *time, const char *days, const char *now, const char *expected)
{
    g_autoptr(GPtrArray) entries = one(time, days);
    g_autoptr(GDateTime) from = at(now);
    g_autoptr(GDateTime) last = timetable_last(g_ptr_array_index(entries, 0), from);
    g_autofree char *text = g_date_time_format(last, "%FT%T%:z");

    g_assert_cmpstr(text, ==, expected);
}

static void test_next(void)
{
    /* A Saturday. */
    assert_next("20:00", "Mon-Sun", "2026-11-21T19:59:59", "2026-11-21T20:00:00+01:00");
    assert_next("20:00", "Mon-Sun", "2026-11-21T20:00:00", "2026-11-22T20:00:00+01:00");
    assert_next("08:00", "Mon-Fri", "2026-11-21T19:00:00", "2026-11-23T08:00:00+01:00");
    assert_next("08:00", "Sat", "2026-11-21T08:00:00", "2026-11-28T08:00:00+01:00");
    assert_next("00:00", "Fri-Mon", "2026-11-24T12:00:00", "2026-11-27T00:00:00+01:00");
    assert_next("23:59", "Sun", "2026-12-31T12:00:00", "2027-01-03T23:59:00+01:00");
    assert_last("20:00", "Mon-Sun", "2026-11-21T20:00:00", "2026-11-21T20:00:00+01:00");
    assert_last("20:00", "Mon-Sun", "2026-11-21T19:59:59", "2026-11-20T20:00:00+01:00");
    assert_last("08:00", "Sat", "2026-11-21T07:00:00", "2026-11-14T08:00:00+01:00");
}

/* 2026 in Berlin: forward on 29 March at 02:00, back on 25 October at 03:00. */
static void test_daylight_saving(void)
{
    assert_next("22:00", "Mon-Sun", "2026-03-28T22:00:00", "2026-03-29T22:00:00+02:00");
    assert_next("22:00", "Mon-Sun", "2026-10-24T22:00:00", "2026-10-25T22:00:00+01:00");
    /* The clock skips it. */
    assert_next("02:30", "Sun", "2026-03-28T12:00:00", "2026-03-29T03:00:00+02:00");
    assert_next("02:30", "Mon-Sun", "2026-03-29T03:00:00", "2026-03-30T02:30:00+02:00");
    /* It occurs twice, and counts once. */
    assert_next("02:30", "Mon-Sun", "2026-10-24T12:00:00", "2026-10-25T02:30:00+01:00");
    assert_next("02:30", "Mon-Sun", "2026-10-25T02:30:00+01:00", "2026-10-26T02:30:00+01:00");
    assert_last("22:00", "Mon-Sun", "2026-03-30T06:00:00", "2026-03-29T22:00:00+02:00");
}

static void test_values(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) entries =
        load("[at day]\ngpu=" GPU "\nmode=shared\ntime=08:00\n"
             "[at night]\ngpu=" GPU "\nmode=passthrough\ntime=20:15\ndays=Mon-Fri,Sun\nwarn=90s\n"
             "timeout=0\ndrain=no\n"
             "[at cut]\ngpu=0000:65:00.0\nmode=partitioned\npartitions=4\ntime=08:00\n",
             &error);
    const TimetableEntry *day, *night;

    g_assert_no_error(error);
    g_assert_cmpuint(entries->len, ==, 3);
    day = g_ptr_array_index(entries, 0);
    g_assert_cmpuint(day->days, ==, 0x7f);
    g_assert_cmpuint(day->warn, ==, 600);
    g_assert_cmpuint(day->timeout, ==, 3600);
    g_assert_true(day->drain);
    night = g_ptr_array_index(entries, 1);
    g_assert_cmpstr(night->name, ==, "night");
    g_assert_cmpstr(night->gpu, ==, GPU);
    g_assert_cmpint(night->mode, ==, GPU_MODE_PASSTHROUGH);
    g_assert_cmpuint(night->minute, ==, 20 * 60 + 15);
    g_assert_cmpuint(night->days, ==, 0x5f);
    g_assert_cmpuint(night->warn, ==, 90);
    g_assert_cmpuint(night->timeout, ==, 0);
    g_assert_false(night->drain);
    g_assert_cmpuint(((const TimetableEntry *)g_ptr_array_index(entries, 2))->partitions, ==, 4);
}

#define AT "[at a]\ngpu=" GPU "\nmode=shared\ntime=08:00\n"

static void test_mistakes(void)
{
    static const struct {
        const char *text;
        const char *part;
    } cases[] = {
        {"[at a]\nmode=shared\ntime=08:00\n", "gpu= is not allowed: it must be a full PCI address"},
        {"[at a]\ngpu=01:00.0\nmode=shared\ntime=08:00\n", "gpu=01:00.0 is not allowed"},
        {"[at a]\ngpu=" GPU "\ntime=08:00\n", "mode= is not allowed"},
        {"[at a]\ngpu=" GPU "\nmode=whole\ntime=08:00\n", "mode=whole is not allowed"},
        {"[at a]\ngpu=" GPU "\nmode=shared\n",
         "time= is not allowed: it must be a time of the day"},
        {"[at a]\ngpu=" GPU "\nmode=shared\ntime=8:00\n", "time=8:00"},
        {"[at a]\ngpu=" GPU "\nmode=shared\ntime=24:00\n", "time=24:00"},
        {"[at a]\ngpu=" GPU "\nmode=shared\ntime=08:60\n", "time=08:60"},
        {AT "days=Mo\n", "days=Mo is not allowed"},
        {AT "days=\n", "days= is not allowed"},
        {AT "days=Mon,,Tue\n", "days=Mon,,Tue"},
        {AT "days=Mon-\n", "days=Mon-"},
        {AT "warn=10\n", "warn=10 is not allowed: it must be a time as 90s"},
        {AT "warn=10d\n", "warn=10d"},
        {AT "timeout=169h\n", "timeout=169h"},
        {AT "timeout=18446744073709551615h\n", "timeout=18446744073709551615h"},
        {AT "timeout=-1s\n", "timeout=-1s"},
        {AT "drain=true\n", "drain=true is not allowed: it must be yes or no"},
        {AT "partitions=0\n", "from 1 to 256"},
        {AT "at=1\n", "unknown key \"at\""},
        {AT "[gpu x]\n", "written [at NAME]"},
        {AT "[at b]\ngpu=" GPU "\nmode=host\ntime=08:00\ndays=Sun\n",
         "[at b]: [at a] is for the same GPU at the same time"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GPtrArray) entries = load(cases[i].text, &error);

        g_assert_null(entries);
        g_assert_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG);
        if (!strstr(error->message, cases[i].part))
            g_error("expected %s, got %s", cases[i].part, error->message);
    }
}

/* An entry that is due @minutes from now, in vgpud's clock. */
static void write_schedule(HostRoot *root, const char *mode, int minutes)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_local();
    g_autoptr(GDateTime) due = g_date_time_add_minutes(now, minutes);
    g_autofree char *clock = g_date_time_format(due, "%H:%M");
    g_autofree char *text =
        g_strdup_printf("[at test]\ngpu=" GPU "\nmode=%s\ntime=%s\nwarn=2m\n", mode, clock);

    file_tree_write(root, SCHEDULE_CONF, text);
}

static const char *mode_of(const AgentOnBus *host)
{
    return vgpu_gpu_get_mode(host_gpu_interface(agent_host(host->agent), GPU));
}

static void open_host(AgentOnBus *host)
{
    agent_on_bus_open(host, "shared");
    file_tree_write(host->root, "/etc/vgpu/types.d/10.conf", "[type half]\nvram=1/2\n");
    file_tree_write(host->root, "/etc/vgpu/gpus.conf", "[gpu " GPU "]\nmode=shared\n");
    fake_kernel_use(host->root);
}

static void wait_for_mode(const AgentOnBus *host, const char *mode)
{
    while (!g_str_equal(mode_of(host), mode))
        g_main_context_iteration(NULL, TRUE);
}

/*
 * A missed entry is applied at the start, once: not again after the operator has changed the mode.
 */
static void test_missed(void)
{
    AgentOnBus host;

    open_host(&host);
    write_schedule(host.root, "passthrough", -1);
    agent_on_bus_restart(&host);
    wait_for_mode(&host, "passthrough");
    assert_says("schedule list", 0, "test      " GPU "  passthrough", "");
    assert_says("-o json schedule list", 0, "\"Warn\" : 120", "");
    assert_says("gpu mode " GPU " shared", 0, "is registered", "");
    agent_on_bus_restart(&host);
    assert_says("gpu users " GPU, 0, "Nobody uses this GPU.", "");
    g_assert_cmpstr(mode_of(&host), ==, "shared");
    agent_on_bus_close(&host);
}

/* By its timer, within the minute; with a warning before. */
static void test_due(void)
{
    AgentOnBus host;

    open_host(&host);
    agent_on_bus_restart(&host);
    assert_says("schedule list", 0, "No GPU's mode changes by the clock", "");
    write_schedule(host.root, "passthrough", 1);
    assert_says("reload", 0, "", "");
    g_assert_cmpstr(mode_of(&host), ==, "shared");
    wait_for_mode(&host, "passthrough");
    agent_on_bus_close(&host);
}

static gboolean is_passthrough(gconstpointer data)
{
    return g_str_equal(mode_of(data), "passthrough");
}

static void keep_log(const char *domain, GLogLevelFlags level, const char *message, void *log)
{
    g_string_append_printf(log, "%s\n", message);
    g_log_default_handler(domain, level, message, NULL);
}

/* Another switch of the GPU is being done when an entry is due: it comes after that. */
static void test_due_meanwhile(void)
{
    AgentOnBus host;
    g_autoptr(GString) log = g_string_new("");

    open_host(&host);
    write_schedule(host.root, "passthrough", -1);
    file_tree_write(host.root, "/etc/vgpu/gpus.conf", "[gpu " GPU "]\nmode=host\n");
    g_log_set_default_handler(keep_log, log);
    agent_on_bus_restart(&host);
    iterate_until(is_passthrough, &host);
    g_log_set_default_handler(g_log_default_handler, NULL);
    g_assert_nonnull(strstr(log->str, "is being switched to host just now"));
    g_assert_nonnull(strstr(log->str, "it comes after that"));
    agent_on_bus_close(&host);
}

static void test_broken(void)
{
    AgentOnBus host;

    open_host(&host);
    agent_on_bus_restart(&host);
    file_tree_write(host.root, SCHEDULE_CONF, "[at a]\n");
    assert_says("reload", 2, "", "schedule.conf: [at a]: gpu= is not allowed");
    agent_on_bus_close(&host);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/schedule/next", test_next);
    g_test_add_func("/schedule/daylight-saving", test_daylight_saving);
    g_test_add_func("/schedule/values", test_values);
    g_test_add_func("/schedule/mistakes", test_mistakes);
    g_test_add_func("/schedule/missed", test_missed);
    g_test_add_func("/schedule/due-meanwhile", test_due_meanwhile);
    g_test_add_func("/schedule/broken", test_broken);
    if (g_test_slow())
        g_test_add_func("/schedule/due", test_due);
    return g_test_run();
}
