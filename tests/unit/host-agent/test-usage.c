/* SPDX-License-Identifier: MIT */
/* vGPUs' promises and usage: summed by the hour, stored, reported. */

#include "host-agent/model/usage.h"
#include "host-agent/store/owner_table.h"
#include "host-agent/store/tables.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/fake_arbiter.h"
#include "tests/unit/host-agent/recorded_host.h"

#define PLACE "pci0000:00/0000:00:01.0/0000:02:00.0"
#define UUID  "c0ffee00-0000-4000-8000-000000000001"
#define GIB   G_GUINT64_CONSTANT(0x40000000)
#define HOUR  USAGE_HOUR
/* 2026-11-21 10:00 UTC */
#define TEN G_GINT64_CONSTANT(1795255200)
/* When these months of 2026 begin. */
#define NOVEMBER G_GINT64_CONSTANT(1793491200)
#define DECEMBER (NOVEMBER + 30 * 86400)

static UsageSample sample(void)
{
    return (UsageSample){
        .uuid = UUID,
        .tenant = "red",
        .gpu = "0000:02:00.0",
        .type = "amdgpu-vgpu-half",
        .vram = 8 * GIB,
        .compute = 50,
        .requests = 1000,
        .doorbells = 1000,
        .gpu_ns = 5000000000,
        .cpu_us = 1000000,
    };
}

static const UsageRow *only_row(GPtrArray *rows)
{
    g_assert_cmpuint(rows->len, ==, 1);
    return g_ptr_array_index(rows, 0);
}

static void test_busy(void)
{
    g_autoptr(Usage) usage = usage_new();
    g_autoptr(GPtrArray) rows = NULL;
    UsageSample now = sample();
    const UsageRow *row;

    usage_add(usage, &now, TEN, 60); /* the start of the counters */
    usage_add(usage, &now, TEN + 60, 60);
    now.requests += 7;
    usage_add(usage, &now, TEN + 120, 60);
    now.doorbells++;
    usage_add(usage, &now, TEN + 180, 60);
    now.gpu_ns += 1000;
    usage_add(usage, &now, TEN + 240, 60);
    now.cpu_us += 500000; /* less than one per cent of a minute */
    usage_add(usage, &now, TEN + 300, 60);
    now.cpu_us += 700000;
    now.vram_used = 3 * GIB;
    usage_add(usage, &now, TEN + 360, 60);
    now.vram_used = 1 * GIB;
    usage_add(usage, &now, TEN + 420, 60);
    rows = usage_take(usage);
    row = only_row(rows);
    g_assert_cmpint(row->hour, ==, TEN);
    g_assert_cmpuint(row->seconds, ==, 420);
    g_assert_cmpuint(row->busy_seconds, ==, 240);
    g_assert_cmpuint(row->requests, ==, 7);
    g_assert_cmpuint(row->gpu_ns, ==, 1000);
    g_assert_cmpuint(row->peak_vram, ==, 3 * GIB);
}

/* An arbiter that restarts takes nothing of the other counter with it. */
static void test_alone(void)
{
    g_autoptr(Usage) usage = usage_new();
    g_autoptr(GPtrArray) rows = NULL;
    UsageSample now = sample();

    now.alone_ns = 3600 * G_GUINT64_CONSTANT(1000000000);
    usage_add(usage, &now, TEN, 60);
    now.gpu_ns += 30;
    now.alone_ns += 4;
    usage_add(usage, &now, TEN + 60, 60);
    now.gpu_ns = 500;
    now.alone_ns += 1;
    usage_add(usage, &now, TEN + 120, 60);
    rows = usage_take(usage);
    g_assert_cmpuint(only_row(rows)->gpu_ns, ==, 535);
}

/* A peak between two samples belongs to the hour in which it was reached, and to no later one. */
static void test_peak(void)
{
    g_autoptr(Usage) usage = usage_new();
    g_autoptr(GPtrArray) first = NULL, second = NULL;
    UsageSample now = sample();

    now.vram_used = 1 * GIB;
    now.vram_peak = 5 * GIB; /* of the time before the first sample */
    usage_add(usage, &now, TEN + HOUR - 120, 0);
    usage_add(usage, &now, TEN + HOUR - 60, 60);
    now.vram_peak = 6 * GIB;
    usage_add(usage, &now, TEN + HOUR, 60);
    first = usage_take(usage);
    g_assert_cmpuint(only_row(first)->peak_vram, ==, 6 * GIB);
    usage_add(usage, &now, TEN + HOUR + 60, 60);
    now.vram_peak = 2 * GIB; /* the arbiter was started again */
    usage_add(usage, &now, TEN + HOUR + 120, 60);
    second = usage_take(usage);
    g_assert_cmpuint(only_row(second)->peak_vram, ==, 1 * GIB);
    g_clear_pointer(&second, g_ptr_array_unref);
    now.vram_peak = 3 * GIB;
    usage_add(usage, &now, TEN + HOUR + 180, 60);
    second = usage_take(usage);
    g_assert_cmpuint(only_row(second)->peak_vram, ==, 3 * GIB);
}

/* Time without samples is that of all that had one, with what was promised then. */
static void test_idle(void)
{
    g_autoptr(Usage) usage = usage_new();
    g_autoptr(GPtrArray) rows = NULL;
    UsageSample now = sample();
    const UsageRow *row;

    usage_add_idle(usage, TEN, 600);
    usage_add(usage, &now, TEN, 60);
    usage_add_idle(usage, TEN, 0);
    rows = usage_take(usage);
    g_assert_cmpuint(rows->len, ==, 0);
    g_ptr_array_unref(rows);
    usage_add_idle(usage, TEN + 600, 600);
    now.requests += 7;
    usage_add(usage, &now, TEN + 660, 60);
    rows = usage_take(usage);
    usage_give_back(usage, rows); /* the database could not be written */
    g_assert_cmpuint(rows->len, ==, 0);
    g_ptr_array_unref(rows);
    rows = usage_take(usage);
    row = only_row(rows);
    g_assert_cmpint(row->hour, ==, TEN);
    g_assert_cmpstr(row->tenant, ==, "red");
    g_assert_cmpuint(row->vram, ==, 8 * GIB);
    g_assert_cmpuint(row->seconds, ==, 660);
    g_assert_cmpuint(row->busy_seconds, ==, 60);
}

/* Each hour has its own part of idle time. */
static void test_idle_hours(void)
{
    g_autoptr(Usage) usage = usage_new();
    g_autoptr(GPtrArray) rows = NULL;
    UsageSample now = sample();
    guint64 seconds[3] = {0};

    usage_add(usage, &now, TEN, 60);
    usage_add_idle(usage, TEN + 2 * HOUR + 10, HOUR + 30);
    rows = usage_take(usage);
    for (guint i = 0; i < rows->len; i++) {
        const UsageRow *row = g_ptr_array_index(rows, i);

        seconds[(row->hour - TEN) / HOUR] += row->seconds;
    }
    g_assert_cmpuint(seconds[0], ==, 20);
    g_assert_cmpuint(seconds[1], ==, HOUR);
    g_assert_cmpuint(seconds[2], ==, 10);
}

/* An arbiter that did not answer once: what was used so far is not counted again. */
static void test_unknown(void)
{
    g_autoptr(Usage) usage = usage_new();
    g_autoptr(GPtrArray) rows = NULL;
    UsageSample now = sample(), unknown = {.unknown = TRUE};

    unknown.uuid = now.uuid;
    unknown.tenant = now.tenant;
    unknown.gpu = now.gpu;
    unknown.type = now.type;
    usage_add(usage, &now, TEN, 60);
    usage_add(usage, &unknown, TEN + 60, 60);
    now.gpu_ns += 1000;
    usage_add(usage, &now, TEN + 120, 60);
    rows = usage_take(usage);
    g_assert_cmpuint(only_row(rows)->seconds, ==, 120);
    g_assert_cmpuint(only_row(rows)->busy_seconds, ==, 60);
    g_assert_cmpuint(only_row(rows)->gpu_ns, ==, 1000);
}

/* An hour each, and one for each tenant; nothing twice. */
static void test_rows(void)
{
    g_autoptr(Usage) usage = usage_new();
    UsageSample now = sample();
    GPtrArray *rows;

    usage_add(usage, &now, TEN + HOUR - 60, 0);
    usage_add(usage, &now, TEN + HOUR, 60); /* the last minute of that hour */
    usage_add(usage, &now, TEN + HOUR + 60, 60);
    now.tenant = "blue";
    usage_add(usage, &now, TEN + HOUR + 120, 60);
    rows = usage_take(usage);
    g_assert_cmpuint(rows->len, ==, 3);
    g_ptr_array_unref(rows);
    rows = usage_take(usage);
    g_assert_cmpuint(rows->len, ==, 0);
    g_ptr_array_unref(rows);
}

/* The vGPU is made again under its old name, or its engine restarted. */
static void test_counters_begin_anew(void)
{
    g_autoptr(Usage) usage = usage_new();
    g_autoptr(GPtrArray) rows = NULL;
    UsageSample now = sample();

    usage_add(usage, &now, TEN, 60);
    now.requests = 3;
    usage_add(usage, &now, TEN + 60, 60);
    rows = usage_take(usage);
    g_assert_cmpuint(only_row(rows)->requests, ==, 3);
}

static void test_forget_gone(void)
{
    g_autoptr(Usage) usage = usage_new();
    g_autoptr(GPtrArray) rows = NULL;
    UsageSample now = sample();

    usage_add(usage, &now, TEN, 60);
    usage_forget_gone(usage);
    usage_forget_gone(usage); /* no sample since */
    now.requests += 100;
    usage_add(usage, &now, TEN + 120, 60);
    rows = usage_take(usage);
    g_assert_cmpuint(rows->len, ==, 0);
}

static void add_minutes(Db *db, const char *tenant, gint64 from, guint minutes)
{
    g_autoptr(Usage) usage = usage_new();
    UsageSample now = sample();

    now.tenant = tenant;
    usage_add(usage, &now, from, 0);
    for (guint i = 1; i <= minutes; i++) {
        g_autoptr(GPtrArray) rows = NULL;

        now.requests += i % 2;
        now.vram_used = i * GIB / 16;
        usage_add(usage, &now, from + i * 60, 60);
        rows = usage_take(usage); /* stored in parts, as when vgpud is killed and restarted */
        g_assert_true(usage_table_add(db, rows, NULL));
    }
}

/* Reports are summed in a thread, while the main loop writes. */
static void test_reader(void)
{
    HostRoot *root = file_tree_new();
    g_autoptr(Db) agent = db_open(root, NULL);
    g_autoptr(Db) db = db_open_meter(root, NULL);
    g_autoptr(Db) reader = db_open_meter_reader(root, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) red = NULL;
    g_autoptr(GPtrArray) all = NULL;

    add_minutes(db, "red", TEN, 10);
    add_minutes(db, "blue", TEN, 10);
    g_assert_true(db_begin(db, NULL));
    g_assert_true(db_run(db, NULL, "DELETE FROM usage_month", ""));
    red = usage_table_sum(reader, "red", NOVEMBER, DECEMBER, NULL);
    all = usage_table_sum(reader, "", NOVEMBER, DECEMBER, NULL);
    g_assert_cmpuint(red->len, ==, 1);
    g_assert_cmpuint(all->len, ==, 2);
    db_rollback(db);
    g_assert_false(db_run(reader, &error, "DELETE FROM usage_month", ""));
    g_assert_nonnull(error);
    file_tree_free(root);
}

static guint64 seconds_of(Db *db, gint64 begin, gint64 end)
{
    g_autoptr(GPtrArray) rows = usage_table_sum(db, "", begin, end, NULL);
    guint64 sum = 0;

    g_assert_nonnull(rows);
    for (guint i = 0; i < rows->len; i++)
        sum += ((const ReportRow *)g_ptr_array_index(rows, i))->seconds;
    return sum;
}

/* An earlier vgpud counted in its own database: once, and nothing is lost. */
static void test_taken_over(void)
{
    HostRoot *root = file_tree_new();
    g_autoptr(Db) agent = db_open(root, NULL);
    OwnerUse use = {.uuid = "u", .owner = "slurm:c:1", .sum = {7, 8, 9}, .energy_uj = 5};
    g_autoptr(GPtrArray) owners = NULL;
    g_autoptr(Db) db = NULL;

    add_minutes(agent, "red", TEN, 10);
    g_assert_true(owner_table_put(agent, &use, NULL));
    db = db_open_meter(root, NULL);
    g_assert_cmpuint(seconds_of(db, NOVEMBER, DECEMBER), ==, 600);
    owners = owner_table_read(db, NULL);
    g_assert_cmpuint(owners->len, ==, 1);
    g_assert_cmpuint(((const OwnerUse *)owners->pdata[0])->sum.throttled_ns, ==, 9);
    g_assert_cmpint(((const OwnerUse *)owners->pdata[0])->energy_uj, ==, 5);
    add_minutes(db, "red", TEN + USAGE_HOUR, 10);
    g_clear_pointer(&db, db_free);
    db = db_open_meter(root, NULL);
    g_assert_cmpuint(seconds_of(db, NOVEMBER, DECEMBER), ==, 1200);
    g_assert_cmpuint(seconds_of(agent, NOVEMBER, DECEMBER), ==, 600);
    file_tree_free(root);
}

static void take_count(sqlite3_stmt *row, void *data)
{
    *(guint *)data = (guint)sqlite3_column_int(row, 0);
}

static guint rows_of(Db *db)
{
    guint count = 0;

    g_assert_true(db_each(db, NULL, take_count, &count, "SELECT count(*) FROM usage_month", ""));
    return count;
}

/* A clock that is decades ahead for a day. */
static void test_wrong_clock(void)
{
    HostRoot *root = file_tree_new();
    g_autoptr(Db) db = db_open(root, NULL);

    add_minutes(db, "red", TEN, 10);
    add_minutes(db, "red", TEN + 20000 * (gint64)86400, 10);
    g_assert_true(usage_table_prune(db, NULL));
    g_assert_cmpuint(seconds_of(db, NOVEMBER, DECEMBER), ==, 600);
    /* Best effort that was stopped then is placed again now. */
    g_assert_true(gpu_table_evict(db, "gpu", "red", TEN + 20000 * (gint64)86400, NULL));
    g_assert_false(gpu_table_is_evicted(db, "gpu", "red", TEN));
    g_assert_true(gpu_table_evict(db, "gpu", "red", TEN, NULL));
    g_assert_true(gpu_table_is_evicted(db, "gpu", "red", TEN + EVICTED_S - 1));
    g_assert_false(gpu_table_is_evicted(db, "gpu", "red", TEN + EVICTED_S));
    file_tree_free(root);
}

static void test_table(void)
{
    HostRoot *root = file_tree_new();
    g_autoptr(Db) db = db_open(root, NULL);
    g_autoptr(GPtrArray) all = NULL, red = NULL;
    const ReportRow *row;

    /* From the last hour of November until the first one of December. */
    add_minutes(db, "red", DECEMBER - 30 * 60, 60);
    add_minutes(db, "blue", TEN, 10);
    all = usage_table_sum(db, "", NOVEMBER, DECEMBER + HOUR, NULL);
    g_assert_cmpuint(all->len, ==, 2);
    red = usage_table_sum(db, "red", NOVEMBER, DECEMBER + HOUR, NULL);
    g_assert_cmpuint(red->len, ==, 1);
    row = g_ptr_array_index(red, 0);
    g_assert_cmpstr(row->tenant, ==, "red");
    g_assert_cmpuint(row->seconds, ==, 3600);
    g_assert_cmpuint(row->busy_seconds, ==, 1800);
    g_assert_cmpfloat(row->vram_seconds, ==, 3600.0 * 8 * GIB);
    g_assert_cmpfloat(row->compute_seconds, ==, 3600.0 * 50);
    g_assert_cmpuint(row->vram, ==, 8 * GIB);
    g_assert_cmpuint(row->peak_vram, ==, 60 * GIB / 16);
    g_assert_cmpuint(seconds_of(db, NOVEMBER, DECEMBER), ==, 1800 + 600);
    g_assert_cmpuint(seconds_of(db, DECEMBER, DECEMBER + HOUR), ==, 1800);
    file_tree_free(root);
}

#define VGPUS 1024
#define DAYS  (2 * 365 + 70)

static void add_hour(GPtrArray *rows, guint vgpu, gint64 hour)
{
    UsageRow *row = g_new0(UsageRow, 1);

    row->hour = hour;
    row->uuid = g_strdup_printf("c0ffee00-0000-4000-8000-%012u", vgpu);
    row->tenant = g_strdup("red");
    row->gpu = g_strdup("0000:02:00.0");
    row->type = g_strdup("amdgpu-vgpu-half");
    row->seconds = HOUR;
    row->vram = 8 * GIB;
    row->compute = 50;
    g_ptr_array_add(rows, row);
}

static void free_row(void *data)
{
    UsageRow *row = data;

    g_free(row->uuid);
    g_free(row->tenant);
    g_free(row->gpu);
    g_free(row->type);
    g_free(row);
}

/*
 * What a report reads does not grow with the hours: a vGPU has a row for each month. Of old ones
 * only so many are kept. Every vGPU has an hour in each month, one of them has all hours at ten.
 */
static void test_years(void)
{
    HostRoot *root = file_tree_new();
    g_autoptr(Db) db = db_open(root, NULL);
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func(free_row);
    gint64 begin, end;

    for (guint day = 0; day < DAYS; day++)
        add_hour(rows, 0, TEN + day * (gint64)86400);
    for (guint month = 0; month < 26; month++)
        for (guint vgpu = 1; vgpu < VGPUS; vgpu++)
            add_hour(rows, vgpu, TEN + month * (gint64)86400 * 30);
    g_assert_true(usage_table_add(db, rows, NULL));
    g_assert_cmpuint(rows_of(db), >, 26 * VGPUS - 1);
    g_assert_cmpuint(rows_of(db), <, 28 * VGPUS);
    g_assert_true(report_month("2027", 0, &begin, &end));
    g_assert_cmpuint(seconds_of(db, begin, end), ==, (365 + 12 * (VGPUS - 1)) * HOUR);
    g_assert_true(usage_table_prune(db, NULL));
    g_assert_cmpuint(rows_of(db), <=, USAGE_MONTHS * VGPUS);
    g_assert_cmpuint(seconds_of(db, NOVEMBER, DECEMBER), ==, 0);
    g_assert_cmpuint(seconds_of(db, begin, end), ==, (365 + 12 * (VGPUS - 1)) * HOUR);
    file_tree_free(root);
}

/* The hours of an older version are added up. */
static void test_upgrade(void)
{
    g_autofree HostRoot *root = file_tree_new();
    g_autofree char *path = root_path(root, "/var/lib/vgpu/state.db", NULL);
    g_autoptr(Db) db = NULL;
    g_autoptr(GPtrArray) rows = NULL;
    const ReportRow *row;
    sqlite3 *old;

    file_tree_write(root, "/var/lib/vgpu/x", "");
    g_assert_cmpint(sqlite3_open(path, &old), ==, SQLITE_OK);
    for (guint i = 0; i < 13; i++)
        g_assert_cmpint(sqlite3_exec(old, schema_steps[i], NULL, NULL, NULL), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_exec(old,
                                 /* 2026-11-01 00:00, 2026-11-30 23:00, 2026-12-01 00:00 */
                                 "INSERT INTO usage VALUES"
                                 " (1793491200, 'u', 'red', 'g', 't', 3600, 60, 7, 50, 5, 11, 1),"
                                 " (1796079600, 'u', 'red', 'g', 't', 1800, 30, 9, 20, 6, 22, 2),"
                                 " (1796083200, 'u', 'red', 'g', 't', 600, 10, 9, 20, 1, 33, 3);"
                                 "PRAGMA user_version = 13",
                                 NULL, NULL, NULL),
                    ==, SQLITE_OK);
    sqlite3_close(old);
    db = db_open(root, NULL);
    g_assert_nonnull(db);
    g_assert_cmpuint(rows_of(db), ==, 2);
    g_assert_cmpuint(seconds_of(db, DECEMBER, DECEMBER + HOUR), ==, 600);
    rows = usage_table_sum(db, "red", NOVEMBER, DECEMBER, NULL);
    g_assert_cmpuint(rows->len, ==, 1);
    row = g_ptr_array_index(rows, 0);
    g_assert_cmpuint(row->seconds, ==, 5400);
    g_assert_cmpuint(row->busy_seconds, ==, 90);
    g_assert_cmpfloat(row->vram_seconds, ==, 3600.0 * 7 + 1800.0 * 9);
    g_assert_cmpfloat(row->compute_seconds, ==, 3600.0 * 50 + 1800.0 * 20);
    g_assert_cmpuint(row->vram, ==, 9);
    g_assert_cmpuint(row->peak_vram, ==, 6);
    g_assert_cmpuint(row->gpu_ns, ==, 33);
    g_clear_pointer(&db, db_free);
    file_tree_free(g_steal_pointer(&root));
}

static void test_month(void)
{
    gint64 begin, end;

    g_assert_true(report_month("2026-11", 0, &begin, &end));
    g_assert_cmpint(begin, ==, 1793491200);
    g_assert_cmpint(end - begin, ==, 30 * 86400);
    g_assert_true(report_month("", TEN, &begin, &end));
    g_assert_cmpint(begin, ==, 1793491200);
    g_assert_true(report_month("2027-12", 0, &begin, &end));
    g_assert_cmpint(end - begin, ==, 31 * 86400);
    g_assert_true(report_month("2028", 0, &begin, &end));
    g_assert_cmpint(begin, ==, 1830297600);
    g_assert_cmpint(end - begin, ==, 366 * 86400);
    g_assert_false(report_month("20281", 0, &begin, &end));
    g_assert_false(report_month("2026-13", 0, &begin, &end));
    g_assert_false(report_month("November", 0, &begin, &end));
    g_assert_false(report_month("2026-1", 0, &begin, &end));
}

static void assert_advice_for(const char *type, guint64 vram, guint64 peak, guint64 hours,
                              guint64 busy, const char *expected)
{
    const ReportSize offered[] = {{"vgpu-full", 16 * GIB},
                                  {"vgpu-half", 8 * GIB},
                                  {"vgpu-quarter", 4 * GIB},
                                  {"vgpu-eighth", 2 * GIB}};
    const ReportRow row = {.type = (char *)type,
                           .seconds = hours * 3600,
                           .busy_seconds = busy * 3600,
                           .vram = vram,
                           .peak_vram = peak};
    g_autoptr(GArray) sizes = g_array_new(FALSE, FALSE, sizeof(ReportSize));
    g_autofree char *advice = NULL;

    g_array_append_vals(sizes, offered, G_N_ELEMENTS(offered));
    advice = report_advice(&row, sizes);
    g_assert_cmpstr(advice, ==, expected);
}

static void assert_advice(guint64 hours, guint64 busy, guint64 peak, const char *expected)
{
    assert_advice_for("vgpu-half", 8 * GIB, peak, hours, busy, expected);
}

static void test_advice(void)
{
    assert_advice(100, 4, 0, "idle for 96 % of its time: give it back");
    assert_advice(100, 4, 3 * GIB, "idle for 96 % of its time: give it back");
    assert_advice(100, 50, 3 * GIB, "peak 3 GiB of 8 GiB: vgpu-quarter would have been enough");
    assert_advice(100, 50, GIB, "peak 1 GiB of 8 GiB: vgpu-eighth would have been enough");
    assert_advice(100, 50, 4 * GIB, ""); /* too close */
    assert_advice(100, 50, 0, "");       /* not reported */
    assert_advice(20, 0, 0, "");         /* too short for advice */
    /* 4G of a card whose quarter is a few MiB less, and a quarter that was made larger. */
    assert_advice_for("vgpu-half", 4 * GIB + 1, 2 * GIB, 100, 50, "");
    assert_advice_for("vgpu-quarter", 6 * GIB, 3 * GIB, 100, 50, "");
}

static void test_on_bus(void)
{
    AgentOnBus at;

    agent_on_bus_open(&at, "shared");
    assert_says("report", 0, "Nothing is known of that time.", "");
    recorded_host_add_vgpu(at.root, PLACE, UUID, "amdgpu-vgpu-half",
                           "state=device=running engine=ready|failure=|vram_bytes=8589934592|"
                           "window_bytes=268435456|weight=100|cap=100|priority=0|requests=10|"
                           "doorbells=1|interrupts=1|engine_losses=0");
    agent_refresh(at.agent);
    usage_sampler_sample(meter_usage(at.meter), 60);
    file_tree_write(at.root, "/sys/devices/" PLACE "/" UUID "/vgpu/requests", "20\n");
    usage_sampler_sample(meter_usage(at.meter), 60);
    assert_says("-o json report", 0, "\"BusyHours\" : 0.016", "");
    agent_on_bus_restart(&at);
    assert_says("report", 0, UUID, "");
    agent_on_bus_stop_meter(&at);
    assert_says("report", 1, "", "vgpu-meter does not run");
    agent_on_bus_start_meter(&at);
    assert_says("report", 0, UUID, "");
    assert_says("report --tenant nobody", 0, "Nothing is known of that time.", "");
    assert_says("report --month 1999-01", 0, "Nothing is known of that time.", "");
    assert_says("report --month lately", 2, "", "\"lately\" is no month");
    agent_on_bus_close(&at);
}

/* While nothing is used there are no samples, and nothing of the time is lost, nor added to others.
 */
static void test_rest(void)
{
    AgentOnBus at;
    FakeArbiter arbiter;

    agent_on_bus_open(&at, "shared");
    fake_arbiter_open(&arbiter, at.root);
    file_tree_write(at.root, "/run/vgpu/governor/0000:02:00.0/rest", "1\n");
    meter_set_agent_up(at.meter, TRUE);
    recorded_host_add_vgpu(at.root, PLACE, UUID, "amdgpu-vgpu-half",
                           "state=device=closed engine=ready|failure=|vram_bytes=8589934592|"
                           "window_bytes=268435456|weight=100|cap=100|priority=0|requests=10|"
                           "doorbells=1|interrupts=1|engine_losses=0");
    agent_refresh(at.agent);
    for (guint i = 0; i < 15; i++)
        usage_sampler_tick(meter_usage(at.meter), 60);
    /* Real seconds, in which this test runs, count, too. */
    assert_says("-o json report", 0, "\"Hours\" : 0.25", "");
    file_tree_write(at.root, "/sys/devices/" PLACE "/" UUID "/vgpu/state",
                    "device=running engine=ready\n");
    file_tree_write(at.root, "/sys/devices/" PLACE "/" UUID "/vgpu/requests", "20\n");
    g_assert_true(usage_sampler_rests(meter_usage(at.meter)));
    agent_update_vgpu(at.agent, UUID);
    g_assert_false(usage_sampler_rests(meter_usage(at.meter)));
    usage_sampler_tick(meter_usage(at.meter), 60);
    g_assert_false(usage_sampler_rests(meter_usage(at.meter)));
    assert_says("-o json report", 0, "\"BusyHours\" : 0.016", "");
    assert_says("-o json report", 0, "\"Hours\" : 0.26", "");
    file_tree_write(at.root, "/sys/devices/" PLACE "/" UUID "/vgpu/state",
                    "device=closed engine=ready\n");
    agent_update_vgpu(at.agent, UUID);
    for (guint i = 0; i < 14; i++)
        usage_sampler_tick(meter_usage(at.meter), 60);
    recorded_host_remove_vgpu(at.root, UUID);
    agent_refresh(at.agent);
    usage_sampler_tick(meter_usage(at.meter), 60);
    assert_says("-o json report", 0, "\"Hours\" : 0.5", "");
    fake_arbiter_close(&arbiter);
    agent_on_bus_close(&at);
}

static void test_top(void)
{
    AgentOnBus at;

    agent_on_bus_open(&at, "shared");
    assert_says("top --once", 0, "This host has no vGPU and no slice.", "");
    recorded_host_add_vgpu(at.root, PLACE, UUID, "amdgpu-vgpu-half",
                           "state=device=running engine=ready|failure=|vram_bytes=8589934592|"
                           "window_bytes=268435456|weight=100|cap=100|priority=0|requests=10|"
                           "doorbells=1|interrupts=1|engine_losses=0");
    agent_refresh(at.agent);
    assert_says("top --once", 0,
                "-      -         8.0 GiB  -         -      -    -        -             0          "
                " 0            "
                "ready",
                "");
    assert_says("-o json top", 0, "\"RequestsPerSecond\" : 0", "");
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/usage/reader", test_reader);
    g_test_add_func("/usage/taken-over", test_taken_over);
    g_test_add_func("/usage/wrong-clock", test_wrong_clock);
    g_test_add_func("/usage/busy", test_busy);
    g_test_add_func("/usage/alone", test_alone);
    g_test_add_func("/usage/peak", test_peak);
    g_test_add_func("/usage/idle", test_idle);
    g_test_add_func("/usage/idle-hours", test_idle_hours);
    g_test_add_func("/usage/unknown", test_unknown);
    g_test_add_func("/usage/rows", test_rows);
    g_test_add_func("/usage/counters-begin-anew", test_counters_begin_anew);
    g_test_add_func("/usage/forget-gone", test_forget_gone);
    g_test_add_func("/usage/table", test_table);
    g_test_add_func("/usage/years", test_years);
    g_test_add_func("/usage/upgrade", test_upgrade);
    g_test_add_func("/usage/month", test_month);
    g_test_add_func("/usage/advice", test_advice);
    g_test_add_func("/usage/on-bus", test_on_bus);
    g_test_add_func("/usage/rest", test_rest);
    g_test_add_func("/usage/top", test_top);
    return g_test_run();
}
