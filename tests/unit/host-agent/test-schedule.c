/* SPDX-License-Identifier: MIT */
/* Modes by the clock: what schedule.conf may say, systemd's timers for it, and what these do. */
#include <gio/gio.h>
#include <string.h>

#include "host-agent/store/tables.h"
#include "lib/conf.h"
#include "lib/schedule_conf.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/fake_kernel.h"
#include "tests/unit/host-agent/fake_systemd.h"

#define GPU    "0000:02:00.0"
#define DEVICE "/sys/devices/pci0000:00/0000:00:01.0/" GPU

static GPtrArray *load(const char *text, GError **error)
{
    HostRoot *root = file_tree_new();
    GPtrArray *entries;

    file_tree_write(root, SCHEDULE_CONF, text);
    entries = schedule_conf_load(root, error);
    file_tree_free(root);
    return entries;
}

static void test_values(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) entries =
        load("[at day]\ngpu=" GPU "\nmode=shared\nat= Mon..Fri 08:00 Europe/Berlin\n"
             "[at night]\ngpu=" GPU "\nmode=passthrough\nat=20:15\nwarn=90s\n"
             "timeout=0\ndrain=no\n"
             "[at cut]\ngpu=0000:65:00.0\nmode=partitioned\npartitions=4\nat=daily\npool=slurm\n",
             &error);
    const ScheduleEntry *day, *night;

    g_assert_no_error(error);
    g_assert_cmpuint(entries->len, ==, 3);
    day = g_ptr_array_index(entries, 0);
    g_assert_cmpstr(day->calendar, ==, "Mon..Fri 08:00 Europe/Berlin");
    g_assert_cmpuint(day->warn, ==, 600);
    g_assert_cmpuint(day->timeout, ==, 3600);
    g_assert_true(day->drain);
    night = g_ptr_array_index(entries, 1);
    g_assert_cmpstr(night->name, ==, "night");
    g_assert_cmpstr(night->gpu, ==, GPU);
    g_assert_cmpint(night->mode, ==, GPU_MODE_PASSTHROUGH);
    g_assert_cmpstr(night->calendar, ==, "20:15");
    g_assert_cmpuint(night->warn, ==, 90);
    g_assert_cmpuint(night->timeout, ==, 0);
    g_assert_false(night->drain);
    g_assert_cmpuint(((const ScheduleEntry *)g_ptr_array_index(entries, 2))->partitions, ==, 4);
    g_assert_cmpstr(((const ScheduleEntry *)g_ptr_array_index(entries, 2))->pool, ==, "slurm");
    g_assert_null(night->pool);
}

static guint delay_on(const char *machine_id)
{
    HostRoot *root = file_tree_new();
    g_autoptr(GPtrArray) entries = NULL;
    const ScheduleEntry *entry;

    file_tree_write(root, "/etc/machine-id", machine_id);
    file_tree_write(root, SCHEDULE_CONF,
                    "[at a]\ngpu=" GPU "\nmode=shared\nat=08:00\nspread=30m\n");
    entries = schedule_conf_load(root, NULL);
    file_tree_free(root);
    entry = g_ptr_array_index(entries, 0);
    return entry->delay;
}

/* The hosts of a fleet do not all switch at once, and each does so at the same time each day. */
static void test_spread(void)
{
    guint quarters[4] = {0};

    g_assert_cmpuint(delay_on("4f3c\n"), ==, delay_on("4f3c\n"));
    for (guint i = 0; i < 100; i++) {
        g_autofree char *id = g_strdup_printf("%032x\n", i);
        guint delay = delay_on(id);

        g_assert_cmpuint(delay, <=, 30 * 60);
        quarters[MIN(delay / 450, 3)]++;
    }
    for (guint i = 0; i < G_N_ELEMENTS(quarters); i++)
        g_assert_cmpuint(quarters[i], >, 10);
}

/* The keys that files had before at=. */
static void test_old_keys(void)
{
    static const char *const cases[][2] = {
        {"time=08:00\n", "*-*-* 08:00:00"},
        {"time=20:15\ndays=Mon-Sun\n", "*-*-* 20:15:00"},
        {"time=08:00\ndays=Mon-Fri, sun\n", "Mon,Tue,Wed,Thu,Fri,Sun *-*-* 08:00:00"},
        {"time=00:00\ndays=Fri-Mon\n", "Mon,Fri,Sat,Sun *-*-* 00:00:00"},
        {"time=23:59\ndays=Sat\n", "Sat *-*-* 23:59:00"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text =
            g_strconcat("[at x]\ngpu=" GPU "\nmode=shared\n", cases[i][0], NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(GPtrArray) entries = load(text, &error);

        g_assert_no_error(error);
        g_assert_cmpstr(((const ScheduleEntry *)g_ptr_array_index(entries, 0))->calendar, ==,
                        cases[i][1]);
    }
}

#define AT   "[at a]\ngpu=" GPU "\nmode=shared\nat=08:00\n"
#define TIME "[at a]\ngpu=" GPU "\nmode=shared\ntime=08:00\n"

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
         "at= is not allowed: it must be a calendar expression"},
        {"[at a]\ngpu=" GPU "\nmode=shared\ntime=8:00\n", "time=8:00"},
        {"[at a]\ngpu=" GPU "\nmode=shared\ntime=24:00\n", "time=24:00"},
        {"[at a]\ngpu=" GPU "\nmode=shared\ntime=08:60\n", "time=08:60"},
        {TIME "days=Mo\n", "days=Mo is not allowed"},
        {TIME "days=\n", "days= is not allowed"},
        {TIME "days=Mon,,Tue\n", "days=Mon,,Tue"},
        {TIME "days=Mon-\n", "days=Mon-"},
        {AT "warn=10\n", "warn=10 is not allowed: it must be a time as 90s"},
        {AT "warn=10d\n", "warn=10d"},
        {AT "timeout=169h\n", "timeout=169h"},
        {AT "timeout=18446744073709551615h\n", "timeout=18446744073709551615h"},
        {AT "timeout=-1s\n", "timeout=-1s"},
        {AT "drain=true\n", "drain=true is not allowed: it must be yes or no"},
        {AT "partitions=0\n", "from 1 to 256"},
        {AT "spread=5\n", "spread=5 is not allowed: it must be a time as 90s"},
        {AT "spread=5m\n[at b]\ngpu=" GPU "\nmode=host\nat=09:00\n",
         "[at b]: spread= must be the same as in [at a]"},
        {AT "pool=mine\n", "pool=mine is not allowed: it must be local, slurm or kubernetes"},
        {AT "when=1\n", "unknown key \"when\""},
        {AT "time=08:00\n", "at= replaces time= and days=; remove those"},
        {AT "days=Mon\n", "at= replaces time= and days="},
        {"[at a]\ngpu=" GPU "\nmode=shared\nat=\n", "at= is not allowed"},
        {"[at a]\ngpu=" GPU "\nmode=shared\nat=08:00\x7f\n", "at=08:00\x7f is not allowed"},
        {"[at a]\ngpu=" GPU "\nmode=shared\ndays=Mon\n", "time= is not allowed"},
        {AT "[gpu x]\n", "written [at NAME]"},
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

static const char *mode_of(const AgentOnBus *host)
{
    return vgpu_gpu_get_mode(host_gpu_interface(agent_host(host->agent), GPU));
}

/**
 * Clock - a host with a fake systemd beside vgpud
 */
typedef struct {
    AgentOnBus host;
    FakeSystemd systemd;
} Clock;

static void open_clock(Clock *clock)
{
    agent_on_bus_open(&clock->host, "shared");
    fake_systemd_start(&clock->systemd, clock->host.daemon);
    file_tree_write(clock->host.root, "/etc/vgpu/types.d/10.conf", "[type half]\nvram=1/2\n");
    file_tree_write(clock->host.root, "/etc/vgpu/gpus.conf", "[gpu " GPU "]\nmode=shared\n");
    fake_kernel_use(clock->host.root);
}

static void close_clock(Clock *clock)
{
    fake_systemd_stop(&clock->systemd);
    agent_on_bus_close(&clock->host);
}

/* Of the whole test, so that two times are as far from each other as they should. */
static gint64 began;

/* "2026-11-25 08:00:00", so many minutes from then. */
static char *in_minutes(int minutes)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(began + minutes * 60);

    return g_date_time_format(time, "%F %T");
}

/* "day" was due @day minutes from now, and "night" @night minutes; both are daily. */
static void set_times(const Clock *clock, int day, int night)
{
    const int minutes[] = {day, night};
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; i < G_N_ELEMENTS(minutes); i++) {
        g_autofree char *time = in_minutes(minutes[i]);
        g_autofree char *next = in_minutes(minutes[i] + 24 * 60);

        g_string_append_printf(text, "%s\t%s,%s\n", i ? "night" : "day", time, next);
    }
    file_tree_write(clock->host.root, "/calendar", text->str);
}

static void write_schedule(const Clock *clock, const char *more)
{
    g_autofree char *text = g_strconcat("[at day]\ngpu=" GPU "\nmode=shared\nat=day\nwarn=0\n"
                                        "[at night]\ngpu=" GPU "\nmode=passthrough\nat=night\n",
                                        more, NULL);

    file_tree_write(clock->host.root, SCHEDULE_CONF, text);
}

/* Of the timer made last whose line has @words: NAME-CHECKSUM. */
static char *timer_with(const Clock *clock, const char *words)
{
    const char *line = NULL;

    iterate_until_said(clock->systemd.made, words);
    for (const char *at = clock->systemd.made->str; *at; at = strchr(at, '\n') + 1)
        if (strstr(at, words) && strstr(at, words) < strchr(at, '\n'))
            line = at;
    g_assert_true(g_str_has_prefix(line, "vgpu-schedule@"));
    line += strlen("vgpu-schedule@");
    return g_strndup(line, (gsize)(strstr(line, ".timer ") - line));
}

static void elapse(const Clock *clock, const char *words)
{
    g_autofree char *instance = timer_with(clock, words);
    g_autofree char *line = g_strdup_printf("schedule run '%s'", instance);

    assert_says(line, 0, "", "");
}

static gboolean is_passthrough(gconstpointer data)
{
    return g_str_equal(mode_of(data), "passthrough");
}

static gboolean is_shared(gconstpointer data)
{
    return g_str_equal(mode_of(data), "shared");
}

#define NIGHT_CALENDAR "('TimersCalendar', <[('OnCalendar', 'night')]>)"
#define NIGHT_WARNING  "<'Warning that GPU " GPU " becomes passthrough (schedule night)'>"

/* A timer for each entry, and one for its warning; exact ones, that are not executed after a boot.
 */
static void test_timers(void)
{
    Clock clock;
    g_autofree char *warning = in_minutes(50);

    open_clock(&clock);
    set_times(&clock, -60, 60);
    write_schedule(&clock, "");
    agent_on_bus_restart(&clock.host);
    iterate_until_said(clock.systemd.made, NIGHT_WARNING);
    g_assert_cmpuint(clock.systemd.units->len, ==, 3);
    iterate_until_said(clock.systemd.made, "('TimersCalendar', <[('OnCalendar', 'day')]>)");
    iterate_until_said(clock.systemd.made, NIGHT_CALENDAR);
    iterate_until_said(clock.systemd.made, "('AccuracyUSec', <uint64 1000000>)");
    iterate_until_said(clock.systemd.made, "<'GPU " GPU " becomes passthrough (schedule night)'>");
    iterate_until_said(clock.systemd.made, warning);
    g_assert_null(strstr(clock.systemd.made->str, "Persistent"));
    close_clock(&clock);
}

static gboolean has_one_timer(gconstpointer data)
{
    return ((const FakeSystemd *)data)->units->len == 1;
}

/* A restart leaves them as they are; a changed entry gets another one, a removed one loses its. */
static void test_changed(void)
{
    Clock clock;
    g_autofree char *day = NULL;
    g_autofree char *night = NULL;
    g_autofree char *run = NULL;

    open_clock(&clock);
    set_times(&clock, -60, 60);
    write_schedule(&clock, "warn=0\n");
    agent_on_bus_restart(&clock.host);
    day = timer_with(&clock, "'day')");
    night = timer_with(&clock, "'night')");
    g_assert_true(g_str_has_prefix(night, "night-"));
    g_string_truncate(clock.systemd.made, 0);
    agent_on_bus_restart(&clock.host);
    assert_says("reload", 0, "", "");
    file_tree_write(clock.host.root, SCHEDULE_CONF,
                    "[at day]\ngpu=" GPU "\nmode=shared\nat=weekly\nwarn=0\n");
    assert_says("reload", 0, "", "");
    iterate_until_said(clock.systemd.stopped, night);
    iterate_until_said(clock.systemd.stopped, day);
    iterate_until_said(clock.systemd.made, "'weekly')");
    iterate_until(has_one_timer, &clock.systemd);
    g_assert_null(strstr(clock.systemd.made->str, "'night')"));
    g_assert_null(strstr(clock.systemd.made->str, "'day')"));
    run = g_strdup_printf("schedule run '%s'", night);
    assert_says(run, 3, "", "the schedule has no entry with the timer night-");
    close_clock(&clock);
}

static void keep_log(const char *domain, GLogLevelFlags level, const char *message, void *log)
{
    g_string_append_printf(log, "%s\n", message);
    g_log_default_handler(domain, level, message, NULL);
}

/* The warning changes nothing, then the entry is executed, and the next warning has a timer. */
static void test_due(void)
{
    Clock clock;
    g_autoptr(GString) log = g_string_new("");
    g_autofree char *tomorrow = in_minutes(24 * 60 - 20);

    open_clock(&clock);
    set_times(&clock, -60, 5);
    write_schedule(&clock, "");
    agent_on_bus_restart(&clock.host);
    g_log_set_default_handler(keep_log, log);
    elapse(&clock, NIGHT_WARNING);
    iterate_until_said(log, "GPU " GPU " becomes passthrough at ");
    g_assert_cmpstr(mode_of(&clock.host), ==, "shared");
    set_times(&clock, -60, -10);
    elapse(&clock, NIGHT_CALENDAR);
    iterate_until(is_passthrough, &clock.host);
    iterate_until_said(clock.systemd.made, tomorrow);
    /* A second time it has been handled. */
    assert_says("gpu mode " GPU " shared", 0, "is registered", "");
    elapse(&clock, NIGHT_CALENDAR);
    assert_says("gpu users " GPU, 0, "Nobody uses this GPU.", "");
    assert_says("schedule list", 0, "night", "");
    g_assert_cmpstr(mode_of(&clock.host), ==, "shared");
    g_log_set_default_handler(g_log_default_handler, NULL);
    close_clock(&clock);
}

/* "night" was due @seconds ago. */
static void set_night(const Clock *clock, gint64 seconds)
{
    g_autoptr(GDateTime) due =
        g_date_time_new_from_unix_utc(g_get_real_time() / G_USEC_PER_SEC - seconds);
    g_autoptr(GDateTime) next = g_date_time_add_days(due, 1);
    g_autofree char *text = g_date_time_format(due, "night\t%F %T,");
    g_autofree char *then = g_date_time_format(next, "%F %T\nday\t2020-01-01 08:00:00\n");
    g_autofree char *all = g_strconcat(text, then, NULL);

    file_tree_write(clock->host.root, "/calendar", all);
}

/* It is due, and the host waits for its part of spread=; also after a restart of vgpud. */
static void test_delayed(void)
{
    Clock clock;
    g_autoptr(GString) log = g_string_new("");
    g_autoptr(GPtrArray) entries = NULL;
    gint64 delay;

    open_clock(&clock);
    file_tree_write(clock.host.root, "/etc/machine-id", "4f3c\n");
    file_tree_write(clock.host.root, SCHEDULE_CONF,
                    "[at day]\ngpu=" GPU "\nmode=shared\nat=day\nwarn=0\nspread=6h\n"
                    "[at night]\ngpu=" GPU "\nmode=passthrough\nat=night\nspread=6h\n");
    entries = schedule_conf_load(clock.host.root, NULL);
    delay = ((const ScheduleEntry *)g_ptr_array_index(entries, 1))->delay;
    g_assert_cmpint(delay, >, 600);
    g_log_set_default_handler(keep_log, log);
    for (guint i = 0; i < 2; i++) {
        set_night(&clock, delay - 300);
        agent_on_bus_restart(&clock.host);
        elapse(&clock, NIGHT_CALENDAR);
        iterate_until_said(log, "GPU " GPU " becomes passthrough in ");
        g_string_truncate(log, 0);
    }
    g_assert_cmpstr(mode_of(&clock.host), ==, "shared");
    set_night(&clock, delay - 1);
    elapse(&clock, NIGHT_CALENDAR);
    iterate_until(is_passthrough, &clock.host);
    g_log_set_default_handler(g_log_default_handler, NULL);
    close_clock(&clock);
}

/*
 * Of what was missed, the last entry is applied at the start, once: not again after the operator
 * has changed the mode.
 */
static void test_missed(void)
{
    Clock clock;

    open_clock(&clock);
    set_times(&clock, -600, -60);
    write_schedule(&clock, "warn=2m\n");
    agent_on_bus_restart(&clock.host);
    iterate_until(is_passthrough, &clock.host);
    iterate_until_told("operation list", "Nothing is being done");
    assert_says("gpu mode " GPU " shared", 0, "is registered", "");
    agent_on_bus_restart(&clock.host);
    assert_says("gpu users " GPU, 0, "Nobody uses this GPU.", "");
    assert_says("schedule list", 0, "night     " GPU "  passthrough", "");
    g_assert_cmpstr(mode_of(&clock.host), ==, "shared");
    close_clock(&clock);
}

/* The clock was set back: what becomes due is applied, although a later time was handled. */
static void test_clock_set_back(void)
{
    Clock clock;

    open_clock(&clock);
    set_times(&clock, -600, 60);
    write_schedule(&clock, "warn=0\n");
    agent_on_bus_restart(&clock.host);
    iterate_until_said(clock.systemd.made, NIGHT_CALENDAR);
    g_assert_true(gpu_table_set_due(host_db(agent_host(clock.host.agent)), GPU,
                                    g_get_real_time() / G_USEC_PER_SEC + 3600, NULL));
    set_times(&clock, -600, -1);
    elapse(&clock, NIGHT_CALENDAR);
    iterate_until(is_passthrough, &clock.host);
    close_clock(&clock);
}

/* In the order of their next time, which systemd is asked for. */
static void test_list(void)
{
    Clock clock;

    open_clock(&clock);
    assert_says("schedule list", 0, "No mode switch is scheduled", "");
    set_times(&clock, -600, -60);
    write_schedule(&clock, "warn=2m\n[at past]\ngpu=" GPU "\nmode=host\nat=2020-01-01\n");
    file_tree_write(clock.host.root, "/calendar", "2020-01-01\t\n");
    assert_says("reload", 0, "", "");
    assert_says("schedule list", 0, "2099-01-01", "");
    assert_says("schedule list", 0,
                "past      " GPU "  host         -     never                 10 min   60 min\n",
                "");
    assert_says("schedule list -o wide", 0, "60 min  2020-01-01\n", "");
    assert_says("-o json schedule list", 0, "\"Warn\" : 120", "");
    assert_says("-o json schedule list", 0, "\"Calendar\" : \"night\"", "");
    assert_says("--help", 0, "schedule list", "");
    close_clock(&clock);
}

#define POOLS "[at tide]\ngpu=" GPU "\nmode=shared\npool=slurm\nat=night\nwarn=0\n"
#define TIDE  "<'GPU " GPU " becomes shared in pool slurm (schedule tide)'>"
#define SHOW  "-o json gpu show " GPU

static void create_slice(const char *pool, int status, const char *err)
{
    g_autofree char *line = g_strdup_printf(
        "gdbus call --system -d org.mdev_vgpu.Host1 -o /org/mdev_vgpu/manager -m"
        " org.mdev_vgpu.Host1.Manager.CreateSlices \"[{'Owner': <'%s:1'>, 'Part': <'0'>,"
        " 'Pool': <'%s'>, 'Door': <'native'>, 'Vram': <uint64 1073741824>}]\"",
        pool, pool);
    Said said = run_beside(line);

    g_test_message("%d %s%s", said.status, said.out, said.err);
    g_assert_cmpint(said.status, ==, status);
    g_assert_nonnull(strstr(said.err, err));
    said_clear(&said);
}

static void open_pools(Clock *clock, const char *more)
{
    g_autofree char *text = g_strconcat(POOLS, more, NULL);

    open_clock(clock);
    set_times(clock, -60, 60);
    file_tree_write(clock->host.root, SCHEDULE_CONF, text);
    agent_on_bus_restart(&clock->host);
    create_slice("local", 0, "");
    set_times(clock, -60, -1);
}

/* A GPU changes its pool when no owner of the other one has a slice of it; until then it is
 * drained, also for a vgpud that was started meanwhile. */
static void test_pool(void)
{
    Clock clock;
    g_autoptr(GString) log = g_string_new("");

    open_pools(&clock, "");
    g_log_set_default_handler(keep_log, log);
    assert_says("schedule list", 0, "shared  slurm  ", "");
    elapse(&clock, TIDE);
    iterate_until_said(log, "GPU " GPU " waits until it is no longer in use: local:1 has slice ");
    assert_says("operation list", 0, "switch", "");
    assert_says(SHOW, 0, "\"Draining\" : true", "");
    create_slice("slurm", 1, "");
    agent_on_bus_restart(&clock.host);
    iterate_until_told(SHOW, "\"Draining\" : true");
    assert_says(SHOW, 0, "\"Pool\" : \"local\"", "");
    assert_says("owner release local:1", 0, "", "");
    iterate_until_told(SHOW, "\"Pool\" : \"slurm\"");
    iterate_until_told(SHOW, "\"Draining\" : false");
    create_slice("local", 1, "it belongs to pool slurm");
    create_slice("slurm", 0, "");
    /* It has been handled. */
    assert_says("owner release slurm:1", 0, "", "");
    assert_says("gpu pool " GPU " local", 0, "", "");
    elapse(&clock, TIDE);
    assert_says("gpu users " GPU, 0, "Nobody uses this GPU.", "");
    assert_says(SHOW, 0, "\"Pool\" : \"local\"", "");
    g_log_set_default_handler(g_log_default_handler, NULL);
    close_clock(&clock);
}

/* An operator ends the wait; without drain= there is none; and it has its time. */
static void test_pool_stays(void)
{
    static const char *const cases[][2] = {
        {"", "schedule tide: the switch of GPU " GPU " to shared was cancelled while it waited"},
        {"drain=no\n", "schedule tide: GPU " GPU " can't be switched to shared while it is in use"},
        {"timeout=1s\n", "schedule tide: the timeout is over: GPU " GPU},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        Clock clock;
        g_autoptr(GString) log = g_string_new("");

        open_pools(&clock, cases[i][0]);
        g_log_set_default_handler(keep_log, log);
        elapse(&clock, TIDE);
        if (i == 0) {
            iterate_until_said(log, "waits until it is no longer in use: local:1 has slice ");
            assert_says("gpu resume " GPU, 0, "", "");
        }
        iterate_until_said(log, cases[i][1]);
        assert_says(SHOW, 0, "\"Draining\" : false", "");
        assert_says(SHOW, 0, "\"Pool\" : \"local\"", "");
        g_log_set_default_handler(g_log_default_handler, NULL);
        close_clock(&clock);
    }
}

/* Another switch of the GPU is being done when an entry is due: it comes after that. */
static void test_due_meanwhile(void)
{
    Clock clock;
    g_autoptr(GString) log = g_string_new("");
    g_autoptr(GSubprocess) operator= NULL;

    open_clock(&clock);
    set_times(&clock, 60, -60);
    write_schedule(&clock, "warn=0\n");
    file_tree_write(clock.host.root, DEVICE "/drm/card0/uevent", "MAJOR=226\nDEVNAME=dri/card0\n");
    g_assert_true(gpu_table_set_due(host_db(agent_host(clock.host.agent)), GPU,
                                    g_get_real_time() / G_USEC_PER_SEC - 1800, NULL));
    agent_on_bus_restart(&clock.host);
    g_log_set_default_handler(keep_log, log);
    fake_process(clock.host.root, FAKE_PID_MIN, "Xorg", NULL, NULL, "dri/card0");
    operator= g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_SILENCE, NULL, AGENT_OUT "/vgpuctl", "gpu",
                               "mode", "--drain", GPU, "passthrough", NULL);
    iterate_until_said(log, "waits until it is no longer in use");
    set_times(&clock, -1, -60);
    elapse(&clock, "'day')");
    iterate_until_said(log, "is being switched to passthrough just now");
    iterate_until_said(log, "it comes after that");
    fake_process_closes(clock.host.root, FAKE_PID_MIN);
    iterate_until_said(log, "GPU " GPU " is passthrough now");
    iterate_until_said(log, "GPU " GPU " is shared now");
    g_assert_true(is_shared(&clock.host));
    g_log_set_default_handler(g_log_default_handler, NULL);
    close_clock(&clock);
}

static void test_broken(void)
{
    Clock clock;

    open_clock(&clock);
    write_schedule(&clock, "");
    agent_on_bus_restart(&clock.host);
    file_tree_write(clock.host.root, SCHEDULE_CONF, "[at a]\n");
    assert_says("reload", 2, "", "schedule.conf: [at a]: gpu= is not allowed");
    write_schedule(&clock, "[at a]\ngpu=" GPU "\nmode=host\nat=invalid\n");
    assert_says("reload", 2, "",
                "[at a]: at=invalid is not allowed: it must be a calendar expression");
    write_schedule(&clock, "[at a]\ngpu=" GPU "\nmode=host\nat=day (again)\n");
    assert_says("reload", 2, "", "[at a]: [at day] is for the same GPU at the same time");
    assert_says("schedule list", 0, "night", "");
    close_clock(&clock);
}

/* vgpud ends in order while a switch waits for its users: at the next start it is due again. */
static void test_waits_over_restart(void)
{
    Clock clock;
    g_autoptr(GString) log = g_string_new("");

    open_clock(&clock);
    set_times(&clock, -60, -10);
    write_schedule(&clock, "warn=0\n");
    file_tree_write(clock.host.root, DEVICE "/drm/card0/uevent", "MAJOR=226\nDEVNAME=dri/card0\n");
    fake_process(clock.host.root, FAKE_PID_MIN, "Xorg", NULL, NULL, "dri/card0");
    g_log_set_default_handler(keep_log, log);
    agent_on_bus_restart(&clock.host);
    iterate_until_said(log, "waits until it is no longer in use");
    g_string_truncate(log, 0);
    agent_on_bus_restart(&clock.host);
    fake_process_closes(clock.host.root, FAKE_PID_MIN);
    iterate_until(is_passthrough, &clock.host);
    iterate_until_told("operation list", "Nothing is being done");
    g_assert_cmpint(gpu_table_due(host_db(agent_host(clock.host.agent)), GPU), >, 0);
    g_log_set_default_handler(g_log_default_handler, NULL);
    close_clock(&clock);
}

#define TENANTS      "/etc/vgpu/tenants.d/10.conf"
#define ARBITER_UNIT "vgpu-arbiter@" GPU ".service\n"

static void assert_policy(const Clock *clock, const char *line)
{
    g_autofree char *path =
        root_path(clock->host.root, "/run/vgpu/governor/" GPU "/gpu.conf", NULL);
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_nonnull(strstr(text, line));
}

/* Restarts vgpud, which must start the GPU's arbiter, and warn of @mistake. */
static void restart_with(Clock *clock, const char *mistake)
{
    g_autoptr(GString) log = g_string_new("");

    g_string_truncate(clock->systemd.started, 0);
    g_log_set_default_handler(keep_log, log);
    agent_on_bus_restart(&clock->host);
    g_log_set_default_handler(g_log_default_handler, NULL);
    iterate_until_said(clock->systemd.started, ARBITER_UNIT);
    if (!strstr(log->str, mistake))
        g_error("expected %s, got %s", mistake, log->str);
}

/* A wrong file at the start of vgpud costs what it says, and nothing else. */
static void test_broken_at_start(void)
{
    Clock clock;

    open_clock(&clock);
    write_schedule(&clock, "warn=0\n");
    set_times(&clock, -60, 60);
    file_tree_write(clock.host.root, TENANTS, "[tenant red]\nvram=8G\n");
    restart_with(&clock, "");
    create_slice("local", 0, "");
    iterate_until_said(clock.systemd.made, "'night')");
    file_tree_write(clock.host.root, SCHEDULE_CONF, "[at a]\n");
    restart_with(&clock, "(\"vgpuctl reload\") no GPU changes its mode or pool by the clock");
    assert_says("tenant list", 0, "red", "");
    assert_says("schedule list", 0, "No mode switch is scheduled", "");
    write_schedule(&clock, "warn=0\n");
    file_tree_write(clock.host.root, TENANTS, "[tenant red]\nvram=lots\n");
    restart_with(&clock, "(\"vgpuctl reload\") no declared tenant exists");
    assert_says("tenant show red", 3, "", "there is no tenant red");
    assert_says("schedule list", 0, "night", "");
    file_tree_write(clock.host.root, TENANTS, "[tenant red]\nvram=8G\n");
    /* The arbiter of what exists, with the policy that it was told last. */
    file_tree_write(clock.host.root, "/etc/vgpu/gpus.conf",
                    "[gpu " GPU "]\nmode=shared\npolicy=fixed\n");
    assert_says("reload", 0, "", "");
    file_tree_write(clock.host.root, "/etc/vgpu/gpus.conf", "[gpu " GPU "]\nmode=shred\n");
    restart_with(&clock, "(\"vgpuctl reload\") no vGPU or slice can be made");
    assert_policy(&clock, "policy=fixed\n");
    assert_says("tenant list", 0, "red", "");
    assert_says("schedule list", 0, "night", "");
    assert_says("slice create --vram 1G --door native", 3, "", "no GPU of this host is shared");
    close_clock(&clock);
}

/* Its times are then systemd's to refuse; the rest of /etc/vgpu is in force. */
static void test_no_answer(void)
{
    Clock clock;
    g_autoptr(GString) log = g_string_new("");

    open_clock(&clock);
    write_schedule(&clock, "");
    file_tree_write(clock.host.root, "/calendar-fails", "no");
    g_log_set_default_handler(keep_log, log);
    assert_says("reload", 0, "", "");
    iterate_until_said(log, "cannot check the times in /etc/vgpu/schedule.conf: ");
    iterate_until_said(clock.systemd.made, NIGHT_CALENDAR);
    assert_says("schedule list", 0, "never", "");
    g_log_set_default_handler(g_log_default_handler, NULL);
    close_clock(&clock);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    began = g_get_real_time() / G_USEC_PER_SEC;
    g_log_set_always_fatal(G_LOG_FATAL_MASK);
    g_test_add_func("/schedule/values", test_values);
    g_test_add_func("/schedule/spread", test_spread);
    g_test_add_func("/schedule/old-keys", test_old_keys);
    g_test_add_func("/schedule/mistakes", test_mistakes);
    g_test_add_func("/schedule/timers", test_timers);
    g_test_add_func("/schedule/changed", test_changed);
    g_test_add_func("/schedule/due", test_due);
    g_test_add_func("/schedule/delayed", test_delayed);
    g_test_add_func("/schedule/missed", test_missed);
    g_test_add_func("/schedule/clock-set-back", test_clock_set_back);
    g_test_add_func("/schedule/list", test_list);
    g_test_add_func("/schedule/pool", test_pool);
    g_test_add_func("/schedule/pool-stays", test_pool_stays);
    g_test_add_func("/schedule/due-meanwhile", test_due_meanwhile);
    g_test_add_func("/schedule/broken", test_broken);
    g_test_add_func("/schedule/no-answer", test_no_answer);
    g_test_add_func("/schedule/waits-over-restart", test_waits_over_restart);
    g_test_add_func("/schedule/broken-at-start", test_broken_at_start);
    return g_test_run();
}
