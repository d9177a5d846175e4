/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/arbiter_reports.h"

#include "host-agent/daemon/engines/arbiters.h"

/**
 * ArbiterReports
 * @gpus: addresses of the GPUs that have an arbiter
 * @last: an arbiter's last Report, by its GPU's address
 * @monitors: of the arbiters' rests; NULL: nobody waits for their end
 */
struct ArbiterReports {
    HostRoot *root;
    Arbiters *arbiters;
    Counters *counters;
    GHashTable *gpus;
    GHashTable *last;
    GPtrArray *monitors;
    CompleteUseFunc complete;
    void *complete_data;
};

typedef struct {
    char *slice;
    SliceUse use;
    GArray *pids;
} ReportedUse;

/**
 * Report - an arbiter's
 * @rest: as arbiter_rest_read() was just before; while it is the same, so are @uses
 */
typedef struct {
    char *rest;
    GArray *uses; /* of ReportedUse */
} Report;

static void clear_use(void *data)
{
    ReportedUse *reported = data;

    g_free(reported->slice);
    g_array_unref(reported->pids);
}

static void report_free(void *data)
{
    Report *report = data;

    g_free(report->rest);
    g_array_unref(report->uses);
    g_free(report);
}

static void add_use(const char *slice, const SliceUse *use, GArray *pids, void *uses)
{
    const ReportedUse reported = {g_strdup(slice), *use, g_array_ref(pids)};

    g_array_append_val((GArray *)uses, reported);
}

/* @rest: as arbiter_rest_read() is now. */
static gboolean is_current(const Report *report, const char *rest)
{
    return report && rest && g_strcmp0(rest, report->rest) == 0;
}

/* An arbiter that is at rest since its last report is not asked again. */
static const Report *report_of(ArbiterReports *reports, const char *gpu)
{
    const Report *last = g_hash_table_lookup(reports->last, gpu);
    g_autofree char *rest = arbiter_rest_read(reports->root, gpu);
    Report *report;

    if (is_current(last, rest))
        return last;
    counters_note_change(reports->counters);
    report = g_new0(Report, 1);
    report->rest = g_steal_pointer(&rest);
    report->uses = g_array_new(FALSE, FALSE, sizeof(ReportedUse));
    g_array_set_clear_func(report->uses, clear_use);
    g_hash_table_insert(reports->last, g_strdup(gpu), report);
    if (arbiters_read_status(reports->arbiters, gpu, add_use, report->uses) != ARBITER_ANSWERS)
        g_clear_pointer(&report->rest, g_free);
    return report;
}

static guint64 measured_of(const Report *report)
{
    guint64 ns = 0;

    for (guint i = 0; i < report->uses->len; i++)
        ns += g_array_index(report->uses, ReportedUse, i).use.gpu_ns;
    return ns;
}

GHashTable *arbiter_reports_members(ArbiterReports *reports, const char *gpu)
{
    GHashTable *members = slice_members_new();

    arbiters_read_members(reports->arbiters, gpu, members);
    return members;
}

gboolean arbiter_reports_is_silent(const ArbiterReports *reports, const char *gpu)
{
    return arbiters_is_silent(reports->arbiters, gpu);
}

static void put_report(const ArbiterReports *reports, Counters *counters, const char *gpu,
                       const Report *report)
{
    ReportedSlice slice = {
        .gpu = gpu, .measured = measured_of(report), .now = g_get_monotonic_time()};

    for (guint i = 0; i < report->uses->len; i++) {
        ReportedUse *reported = &g_array_index(report->uses, ReportedUse, i);

        slice.uuid = reported->slice;
        slice.pids = reported->pids;
        if (reports->complete)
            reports->complete(&slice, &reported->use, reports->complete_data);
        counters_put_use(counters, reported->slice, &reported->use);
    }
}

/* Before counters are read: the values that only the arbiters have. */
static void read_uses(Counters *counters, void *data)
{
    ArbiterReports *reports = data;
    GHashTableIter iter;
    void *gpu;

    g_hash_table_iter_init(&iter, reports->gpus);
    while (g_hash_table_iter_next(&iter, &gpu, NULL))
        if (!arbiters_is_silent(reports->arbiters, gpu))
            put_report(reports, counters, gpu, report_of(reports, gpu));
}

static gboolean all_are_at_rest(void *data)
{
    const ArbiterReports *reports = data;
    GHashTableIter iter;
    void *gpu;

    g_hash_table_iter_init(&iter, reports->gpus);
    while (g_hash_table_iter_next(&iter, &gpu, NULL)) {
        g_autofree char *rest = arbiter_rest_read(reports->root, gpu);

        if (!is_current(g_hash_table_lookup(reports->last, gpu), rest))
            return FALSE;
    }
    return TRUE;
}

static void rest_changed(GFileMonitor *monitor, GFile *file, GFile *other, GFileMonitorEvent event,
                         void *data)
{
    const ArbiterReports *reports = data;

    (void)monitor, (void)file, (void)other, (void)event;
    counters_end_rest(reports->counters);
}

static void monitor_free(void *monitor)
{
    g_file_monitor_cancel(monitor);
    g_object_unref(monitor);
}

/* An arbiter whose rest can't be watched is looked at when the use is sampled next. */
static void monitor_rest(ArbiterReports *reports, const char *gpu)
{
    g_autoptr(GFile) file = arbiter_rest_file(reports->root, gpu);
    GFileMonitor *monitor = g_file_monitor_file(file, G_FILE_MONITOR_NONE, NULL, NULL);

    if (!monitor)
        return;
    g_signal_connect(monitor, "changed", G_CALLBACK(rest_changed), reports);
    g_ptr_array_add(reports->monitors, monitor);
}

static void watch_rests(gboolean watch, void *data)
{
    ArbiterReports *reports = data;
    GHashTableIter iter;
    void *gpu;

    g_clear_pointer(&reports->monitors, g_ptr_array_unref);
    if (!watch)
        return;
    reports->monitors = g_ptr_array_new_with_free_func(monitor_free);
    g_hash_table_iter_init(&iter, reports->gpus);
    while (g_hash_table_iter_next(&iter, &gpu, NULL))
        monitor_rest(reports, gpu);
}

static const CountersSource source = {
    .read = read_uses, .rests = all_are_at_rest, .watch = watch_rests};

ArbiterReports *arbiter_reports_new(HostRoot *root, Counters *counters)
{
    ArbiterReports *reports = g_new0(ArbiterReports, 1);

    reports->root = host_root_ref(root);
    reports->arbiters = arbiters_new(root);
    reports->counters = counters;
    reports->gpus = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    reports->last = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, report_free);
    counters_set_source(counters, &source, reports);
    return reports;
}

void arbiter_reports_free(ArbiterReports *reports)
{
    counters_set_source(reports->counters, NULL, NULL);
    g_clear_pointer(&reports->monitors, g_ptr_array_unref);
    arbiters_free(reports->arbiters);
    g_hash_table_unref(reports->last);
    g_hash_table_unref(reports->gpus);
    host_root_unref(reports->root);
    g_free(reports);
}

void arbiter_reports_complete(ArbiterReports *reports, CompleteUseFunc func, void *data)
{
    reports->complete = func;
    reports->complete_data = data;
}

void arbiter_reports_add(ArbiterReports *reports, const char *gpu)
{
    g_hash_table_add(reports->gpus, g_strdup(gpu));
}

void arbiter_reports_remove(ArbiterReports *reports, const char *gpu)
{
    g_hash_table_remove(reports->gpus, gpu);
    g_hash_table_remove(reports->last, gpu);
}
