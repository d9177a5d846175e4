/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/usage_sampler.h"

#include "host-agent/model/usage.h"
#include "host-agent/store/memory_table.h"
#include "host-agent/store/tables.h"
#include "lib/bus.h"
#include "lib/systemd.h"

#define SAMPLE_S 60
/* If the meter is killed, only the samples since then are lost. */
#define STORE_S (5 * SAMPLE_S)
/* The same while nobody uses a GPU: then there are no samples, but only their time. */
#define REST_S (15 * SAMPLE_S)
/* The loop is late, or the clocks differ, by more than usual. */
#define LATE_S (2 * SAMPLE_S)
#define DAY_S  (24 * USAGE_HOUR)
#define GIB    1073741824.0
#define HOUR_S 3600.0

/**
 * UsageSampler
 * @ticked: when, of the monotonic clock; @period: seconds from then to the next tick
 * @rests: nobody uses a GPU, so the next tick comes when something is to be stored, or when that
 * ends
 * @changed: slices were made, changed or removed since the last sample
 * @serial: of the counters, after it
 * @rest: seconds since then in which nobody used a GPU; @rest_until: their end, since 1970
 * @stored, @pruned: when, seconds since 1970
 * @told: the hour before which vgpud knows what slices have used; 0: it knows nothing
 * @reads: a thread reads for a report
 */
struct UsageSampler {
    HostView *view;
    const AgentLink *agent;
    Usage *usage;
    guint timer;
    gint64 ticked;
    guint period;
    gboolean rests;
    gboolean changed;
    guint64 serial;
    guint rest;
    gint64 rest_until;
    gint64 stored;
    gint64 pruned;
    gint64 told;
    GQueue reports; /* of Report: those that wait */
    gboolean reads;
    GCancellable *freed;
};

static gint64 now_s(void)
{
    return g_get_real_time() / G_USEC_PER_SEC;
}

static void log_failure(GError *error)
{
    g_message("cannot store usage yet: %s", error->message);
    g_error_free(error);
}

/* A GPU's promises go by what its slices are expected to use. */
static gboolean is_any_observed(const UsageSampler *sampler)
{
    const GPtrArray *gpus = host_view_gpus(sampler->view);

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);
        const GpuEntry *entry = offers_settings(host_view_offers(sampler->view), gpu->pci->address);

        if (entry && entry->observed)
            return TRUE;
    }
    return FALSE;
}

/* Once an hour, of those before it. */
static void tell_expected(UsageSampler *sampler)
{
    gint64 hour = now_s() / USAGE_HOUR * USAGE_HOUR;
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) expected = NULL;

    if (hour == sampler->told || !is_any_observed(sampler))
        return;
    expected = memory_table_expect(host_view_db(sampler->view), hour, &error);
    if (!expected) {
        g_message("cannot tell what slices are expected to use: %s", error->message);
        return;
    }
    sampler->told = hour;
    agent_set_expected(sampler->agent, expected);
}

/* FALSE: not now. Then the rows are kept. */
static gboolean store_usage(UsageSampler *sampler)
{
    g_autoptr(GPtrArray) rows = usage_take(sampler->usage);
    Db *db = host_view_db(sampler->view);
    gint64 now = now_s();
    GError *error = NULL;

    sampler->stored = now;
    if (rows->len && !usage_table_add(db, rows, &error)) {
        usage_give_back(sampler->usage, rows);
        log_failure(error);
        return FALSE;
    }
    tell_expected(sampler);
    if (now - sampler->pruned < DAY_S)
        return TRUE;
    sampler->pruned = now;
    if (!usage_table_prune(db, &error) || !memory_table_prune(db, &error))
        log_failure(error);
    return TRUE;
}

/* Of a slice that is no vGPU: its transport replaces the type, which it need not have. */
static void sample_container(const UsageSampler *sampler, const Slice *slice, UsageSample *sample)
{
    const SliceUse *use = counters_use(host_view_counters(sampler->view), slice->uuid);

    if (!*slice->type)
        sample->type = slice_transport_name(slice->transport);
    sample->unknown = !use;
    if (!use)
        return;
    sample->requests = use->submissions;
    sample->gpu_ns = use->gpu_ns;
    sample->alone_ns = use->alone_ns;
    sample->vram_used = use->vram_used;
    sample->vram_known = TRUE;
    sample->vram_peak = use->vram_peak;
}

static void sample_slice(UsageSampler *sampler, const Slice *slice, const VgpuCounters *vgpu,
                         gint64 now, guint seconds)
{
    UsageSample sample = {
        .uuid = slice->uuid,
        .tenant = slice->tenant,
        .gpu = slice->gpu,
        .type = slice->type,
        .vram = slice->vram,
        .compute = slice->compute,
    };

    if (vgpu) {
        sample.requests = vgpu->vgpu->requests;
        sample.doorbells = vgpu->vgpu->doorbells;
        counters_gpu_times(vgpu, &sample.gpu_ns, &sample.alone_ns);
        sample.vram_used = vgpu->drm.vram;
        sample.vram_known = vgpu->drm.vram > 0;
        sample.vram_peak = vgpu->slice_known ? vgpu->slice.vram_peak : 0;
        if (!g_str_equal(vgpu->vgpu->device, "closed"))
            sample.cpu_us = engine_unit_cpu_us(host_view_root(sampler->view), slice->uuid);
    }
    if (!slice_is_vgpu(slice))
        sample_container(sampler, slice, &sample);
    usage_add(sampler->usage, &sample, now, seconds);
}

static void add_rest(UsageSampler *sampler)
{
    usage_add_idle(sampler->usage, sampler->rest_until, sampler->rest);
    sampler->rest = 0;
}

/* The clock may have been set, or the host suspended. */
static void rest_for(UsageSampler *sampler, guint seconds)
{
    gint64 now = now_s();

    if (ABS(now - sampler->rest_until - seconds) > LATE_S)
        add_rest(sampler);
    sampler->rest += seconds;
    sampler->rest_until = now;
}

/* Rows are of one hour. */
static gboolean is_due(const UsageSampler *sampler, gint64 period)
{
    gint64 now = now_s();

    return now - sampler->stored >= period || now / USAGE_HOUR != sampler->stored / USAGE_HOUR;
}

void usage_sampler_sample(UsageSampler *sampler, guint seconds)
{
    const GPtrArray *slices = host_view_slices(sampler->view);
    Counters *counters = host_view_counters(sampler->view);
    gint64 now = now_s();

    counters_read(counters);
    add_rest(sampler);
    sampler->changed = FALSE;
    sampler->serial = counters_serial(counters);
    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (slice_is_promised(slice))
            sample_slice(sampler, slice, counters_known(counters, slice->uuid), now, seconds);
    }
    usage_forget_gone(sampler->usage);
    if (is_due(sampler, STORE_S))
        store_usage(sampler);
}

static guint seconds_since_tick(UsageSampler *sampler)
{
    gint64 now = g_get_monotonic_time();
    gint64 us = now - sampler->ticked;

    sampler->ticked = now;
    return (guint)MIN((us + G_USEC_PER_SEC / 2) / G_USEC_PER_SEC, sampler->period + LATE_S);
}

static gboolean sample_again(void *data);

static void set_period(UsageSampler *sampler, guint seconds)
{
    g_clear_handle_id(&sampler->timer, g_source_remove);
    sampler->period = seconds;
    sampler->timer = g_timeout_add_seconds(seconds, sample_again, sampler);
}

/* Until is_due(REST_S). */
static guint seconds_of_rest(const UsageSampler *sampler)
{
    gint64 now = now_s();
    gint64 until = MIN(sampler->stored + REST_S, (now / USAGE_HOUR + 1) * USAGE_HOUR);

    return (guint)CLAMP(until - now, 1, REST_S);
}

/* Nobody used a GPU until now. */
static void rest_ended(void *data)
{
    UsageSampler *sampler = data;

    rest_for(sampler, seconds_since_tick(sampler));
    sampler->rests = FALSE;
    set_period(sampler, SAMPLE_S);
}

static gboolean can_rest(const UsageSampler *sampler)
{
    return !sampler->changed && counters_rest(host_view_counters(sampler->view), sampler->serial);
}

/* Nothing has changed that a sample would find. */
static void rest_and_store(UsageSampler *sampler, guint seconds)
{
    rest_for(sampler, seconds);
    if (!is_due(sampler, REST_S))
        return;
    add_rest(sampler);
    store_usage(sampler);
}

void usage_sampler_tick(UsageSampler *sampler, guint seconds)
{
    Counters *counters = host_view_counters(sampler->view);

    /* Before it is looked at, so that no change in between is missed. */
    counters_await_change(counters, rest_ended, sampler);
    sampler->rests = can_rest(sampler);
    if (sampler->rests) {
        rest_and_store(sampler, seconds);
    } else {
        counters_await_change(counters, NULL, NULL);
        usage_sampler_sample(sampler, seconds);
    }
    set_period(sampler, sampler->rests ? seconds_of_rest(sampler) : SAMPLE_S);
}

gboolean usage_sampler_rests(const UsageSampler *sampler)
{
    return sampler->rests;
}

static gboolean has_slices(const UsageSampler *sampler)
{
    const GPtrArray *slices = host_view_slices(sampler->view);

    for (guint i = 0; i < slices->len; i++)
        if (slice_is_promised(g_ptr_array_index(slices, i)))
            return TRUE;
    return FALSE;
}

static gboolean sample_again(void *data)
{
    UsageSampler *sampler = data;

    sampler->timer = 0;
    usage_sampler_tick(sampler, seconds_since_tick(sampler));
    if (!has_slices(sampler) && store_usage(sampler))
        g_clear_handle_id(&sampler->timer, g_source_remove);
    return G_SOURCE_REMOVE;
}

/* May be called in a transaction, so nothing is stored here. */
void usage_sampler_refresh(UsageSampler *sampler)
{
    sampler->changed = TRUE;
    counters_end_rest(host_view_counters(sampler->view));
    if (sampler->timer || !has_slices(sampler))
        return;
    seconds_since_tick(sampler);
    sampler->stored = now_s();
    usage_sampler_sample(sampler, 0);
    set_period(sampler, SAMPLE_S);
}

/* The GPU's present offers; the names are owned by the GPU. */
static GArray *sizes_of(const UsageSampler *sampler, const char *address)
{
    const Gpu *gpu = host_view_gpu(sampler->view, address);
    GArray *sizes = g_array_new(FALSE, FALSE, sizeof(ReportSize));

    for (guint i = 0; gpu && gpu->types[i]; i++) {
        Offer offer;
        ReportSize size = {.name = gpu->types[i]};

        if (!offers_find(host_view_offers(sampler->view), gpu, gpu->types[i], &offer))
            continue;
        size.vram = offer.desc->vram_bytes;
        g_array_append_val(sizes, size);
    }
    return sizes;
}

static void add_text(GVariantBuilder *dict, const char *key, const char *text)
{
    g_variant_builder_add(dict, "{sv}", key, g_variant_new_string(text));
}

static void add_number(GVariantBuilder *dict, const char *key, double number)
{
    g_variant_builder_add(dict, "{sv}", key, g_variant_new_double(number));
}

/* @known: of the GPUs that were asked before, by address. */
static const GArray *known_sizes(const UsageSampler *sampler, const char *gpu, GHashTable *known)
{
    GArray *sizes = g_hash_table_lookup(known, gpu);

    if (!sizes) {
        sizes = sizes_of(sampler, gpu);
        g_hash_table_insert(known, (char *)gpu, sizes);
    }
    return sizes;
}

/* @known: as known_sizes(). */
static GVariant *dictionary_of(const UsageSampler *sampler, const ReportRow *row, GHashTable *known)
{
    const GArray *sizes = known_sizes(sampler, row->gpu, known);
    g_autofree char *advice = report_advice(row, sizes);
    GVariantBuilder dict;

    g_variant_builder_init(&dict, G_VARIANT_TYPE_VARDICT);
    add_text(&dict, "Tenant", row->tenant);
    add_text(&dict, "Uuid", row->uuid);
    add_text(&dict, "Type", row->type);
    add_text(&dict, "Gpu", row->gpu);
    add_number(&dict, "Hours", (double)row->seconds / HOUR_S);
    add_number(&dict, "VramHours", row->vram_seconds / GIB / HOUR_S);
    add_number(&dict, "ComputeHours", row->compute_seconds / 100 / HOUR_S);
    add_number(&dict, "BusyHours", (double)row->busy_seconds / HOUR_S);
    g_variant_builder_add(&dict, "{sv}", "Vram", g_variant_new_uint64(row->vram));
    g_variant_builder_add(&dict, "{sv}", "PeakVram", g_variant_new_uint64(row->peak_vram));
    add_number(&dict, "GpuSeconds", (double)row->gpu_ns / 1e9);
    add_text(&dict, "Advice", advice);
    return g_variant_builder_end(&dict);
}

/**
 * Report - one that is made when a thread has read the month, which may take seconds
 * @db: a connection of its own
 */
typedef struct {
    UsageSampler *sampler;
    ReportFunc func;
    void *data;
    char *tenant;
    gint64 begin;
    gint64 end;
    Db *db;
} Report;

static void report_free(void *data)
{
    Report *report = data;

    g_clear_pointer(&report->db, db_free);
    g_free(report->tenant);
    g_free(report);
}

static void report_read(GTask *task, void *source, void *data, GCancellable *cancellable)
{
    const Report *report = data;
    GError *error = NULL;
    GPtrArray *rows =
        usage_table_sum(report->db, report->tenant, report->begin, report->end, &error);

    (void)source;
    (void)cancellable;
    if (rows)
        g_task_return_pointer(task, rows, (GDestroyNotify)g_ptr_array_unref);
    else
        g_task_return_error(task, error);
}

/* One after the other: the threads are also others'. */
static void reports_next(UsageSampler *sampler);

static void report_answer(GObject *source, GAsyncResult *result, void *data)
{
    Report *report = g_task_get_task_data(G_TASK(result));
    GError *error = NULL;
    g_autoptr(GPtrArray) rows = g_task_propagate_pointer(G_TASK(result), &error);
    g_autoptr(GHashTable) known =
        g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)g_array_unref);
    g_autoptr(GVariant) answer = NULL;
    GVariantBuilder list;

    (void)source;
    (void)data;
    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
        /* The sampler is gone. */
        g_error_free(error);
        return;
    }
    reports_next(report->sampler);
    if (!rows) {
        report->func(NULL, error, report->data);
        g_error_free(error);
        return;
    }
    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < rows->len; i++)
        g_variant_builder_add_value(
            &list, dictionary_of(report->sampler, g_ptr_array_index(rows, i), known));
    answer = g_variant_ref_sink(g_variant_new("(@aa{sv})", g_variant_builder_end(&list)));
    report->func(answer, NULL, report->data);
}

static void reports_next(UsageSampler *sampler)
{
    g_autoptr(GTask) task = NULL;
    Report *report = g_queue_pop_head(&sampler->reports);

    sampler->reads = report != NULL;
    if (!report)
        return;
    task = g_task_new(NULL, sampler->freed, report_answer, NULL);
    g_task_set_task_data(task, report, report_free);
    g_task_run_in_thread(task, report_read);
}

static gboolean report_begin(UsageSampler *sampler, Report *report, const char *month,
                             GError **error)
{
    if (!report_month(month, now_s(), &report->begin, &report->end)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "\"%s\" is no month; write it as 2026-11, or a year as 2026", month);
        return FALSE;
    }
    if (sampler->rests)
        rest_for(sampler, seconds_since_tick(sampler));
    add_rest(sampler);
    store_usage(sampler);
    report->db = db_open_meter_reader(host_view_root(sampler->view), error);
    return report->db != NULL;
}

void usage_sampler_report(UsageSampler *sampler, const char *tenant, const char *month,
                          ReportFunc func, void *data)
{
    Report *report = g_new0(Report, 1);
    g_autoptr(GError) error = NULL;

    report->sampler = sampler;
    report->func = func;
    report->data = data;
    report->tenant = g_strdup(tenant);
    if (!report_begin(sampler, report, month, &error)) {
        func(NULL, error, data);
        report_free(report);
        return;
    }
    g_queue_push_tail(&sampler->reports, report);
    if (!sampler->reads)
        reports_next(sampler);
}

void usage_sampler_tell_again(UsageSampler *sampler)
{
    sampler->told = 0;
    tell_expected(sampler);
}

UsageSampler *usage_sampler_new(HostView *view, const AgentLink *agent)
{
    UsageSampler *sampler = g_new0(UsageSampler, 1);

    sampler->view = view;
    sampler->agent = agent;
    sampler->usage = usage_new();
    sampler->stored = now_s();
    sampler->freed = g_cancellable_new();
    return sampler;
}

void usage_sampler_free(UsageSampler *sampler)
{
    g_cancellable_cancel(sampler->freed);
    g_object_unref(sampler->freed);
    g_queue_clear_full(&sampler->reports, report_free);
    counters_await_change(host_view_counters(sampler->view), NULL, NULL);
    if (sampler->timer) {
        g_source_remove(sampler->timer);
        usage_sampler_sample(sampler, seconds_since_tick(sampler));
    }
    store_usage(sampler);
    usage_free(sampler->usage);
    g_free(sampler);
}
