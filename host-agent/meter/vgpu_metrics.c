/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/vgpu_metrics.h"

#include <string.h>

#define NS_PER_SECOND 1e9

/**
 * VgpuRow - a vGPU, and what of it is no number elsewhere
 */
typedef struct {
    const VgpuCounters *counters;
    const Slice *slice;
    guint is_running;
    guint is_ready;
    gboolean vram_known;
    guint64 vram_used;
} VgpuRow;

/**
 * VgpuTable
 * @vgpus: of VgpuRow
 * @rows: of MetricRow, as many
 * @gpus: address to Share
 * @tenants: name to Share
 */
struct VgpuTable {
    GArray *vgpus;
    GArray *rows;
    GHashTable *gpus;
    GHashTable *tenants;
};

static const char *tenant_of(const VgpuRow *row)
{
    return row->slice ? row->slice->tenant : "";
}

static void add_to(GHashTable *shares, const char *whose, guint64 vram, guint compute)
{
    Share *share = g_hash_table_lookup(shares, whose);

    if (!share) {
        share = g_new0(Share, 1);
        g_hash_table_insert(shares, (void *)whose, share);
    }
    share->vgpus++;
    share->vram += vram;
    share->compute += compute;
}

static void add_vgpu(VgpuTable *table, const VgpuCounters *counters, const Slice *slice)
{
    const Vgpu *vgpu = counters->vgpu;
    guint compute = slice ? slice->compute : 0;
    VgpuRow row = {.counters = counters,
                   .slice = slice,
                   .is_running = g_str_equal(vgpu->device, "running"),
                   .is_ready = g_str_equal(vgpu->engine, "ready")};

    row.vram_known = counters_vram(counters, &row.vram_used);
    g_array_append_val(table->vgpus, row);
    add_to(table->gpus, vgpu->gpu, vgpu->vram, compute);
    add_to(table->tenants, tenant_of(&row), vgpu->vram, compute);
}

/* Their structures, by number. */
enum { OF_ROW, OF_COUNTERS, OF_VGPU };

/* When the vGPUs do not move any more. */
static void add_rows(VgpuTable *table)
{
    for (guint i = 0; i < table->vgpus->len; i++) {
        const VgpuRow *vgpu = &g_array_index(table->vgpus, VgpuRow, i);
        const VgpuCounters *counters = vgpu->counters;
        MetricRow row = {
            .parts = {[OF_ROW] = vgpu, [OF_COUNTERS] = counters, [OF_VGPU] = counters->vgpu}};

        row.labels = exposition_labels("vgpu", counters->vgpu->uuid, "gpu", counters->vgpu->gpu,
                                       "tenant", tenant_of(vgpu), NULL);
        g_array_append_val(table->rows, row);
    }
}

VgpuTable *vgpu_table_new(const HostMetrics *host)
{
    VgpuTable *table = g_new0(VgpuTable, 1);

    table->vgpus = g_array_sized_new(FALSE, FALSE, sizeof(VgpuRow), host->vgpus->len);
    table->rows = metric_rows_new();
    table->gpus = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    table->tenants = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    for (guint i = 0; i < host->vgpus->len; i++) {
        const VgpuCounters *counters = g_ptr_array_index(host->vgpus, i);

        add_vgpu(table, counters, host->slice(counters->vgpu->uuid, host->data));
    }
    add_rows(table);
    for (guint i = 0; i < host->slices->len; i++) {
        const Slice *slice = g_array_index(host->slices, SliceMetrics, i).slice;

        add_to(table->gpus, slice->gpu, slice->vram, slice->compute);
        add_to(table->tenants, slice->tenant, slice->vram, slice->compute);
    }
    return table;
}

void vgpu_table_free(VgpuTable *table)
{
    g_array_unref(table->rows);
    g_array_unref(table->vgpus);
    g_hash_table_unref(table->gpus);
    g_hash_table_unref(table->tenants);
    g_free(table);
}

const Share *vgpu_table_of_gpu(const VgpuTable *table, const char *address)
{
    static const Share none;
    const Share *share = g_hash_table_lookup(table->gpus, address);

    return share ? share : &none;
}

#define ROW(field)      .part = OF_ROW, .value = NUMBER(VgpuRow, field)
#define COUNTERS(field) .part = OF_COUNTERS, .value = NUMBER(VgpuCounters, field)
#define VGPU(field)     .part = OF_VGPU, .value = NUMBER(Vgpu, field)
#define IF_TOLD         .known = NUMBER(VgpuCounters, slice_known)

static const Metric vgpu_metrics[] = {
    {"vgpu_vgpu_vram_promised_bytes", METRIC_GAUGE, "GPU memory promised to the vGPU.", VGPU(vram)},
    {"vgpu_vgpu_running", METRIC_GAUGE, "1: the guest's driver is up.", ROW(is_running)},
    {"vgpu_vgpu_engine_ready", METRIC_GAUGE, "1: the vGPU's engine is ready.", ROW(is_ready)},
    {"vgpu_vgpu_window_published_bytes", METRIC_GAUGE, "Published part of the window.",
     COUNTERS(window_published)},
    {"vgpu_vgpu_pinned_bytes", METRIC_GAUGE, "Guest memory that is pinned for resources.",
     COUNTERS(pinned)},
    {"vgpu_vgpu_requests_total", METRIC_COUNTER, "virtio-gpu requests given to the engine.",
     VGPU(requests)},
    {"vgpu_vgpu_doorbells_total", METRIC_COUNTER, "Notifications by the guest's driver.",
     VGPU(doorbells)},
    {"vgpu_vgpu_interrupts_total", METRIC_COUNTER, "Interrupts to the guest.", VGPU(interrupts)},
    {"vgpu_vgpu_window_faults_total", METRIC_COUNTER, "Page faults in the window.",
     COUNTERS(window_faults)},
    {"vgpu_vgpu_engine_losses_total", METRIC_COUNTER,
     "Engines that were lost while a guest used them.", VGPU(engine_losses)},
    {"vgpu_vgpu_vram_used_bytes", METRIC_GAUGE,
     "GPU memory in use by the vGPU's engine, from the GPU's driver or its arbiter.",
     ROW(vram_used), .known = NUMBER(VgpuRow, vram_known)},
    {"vgpu_vgpu_vram_peak_bytes", METRIC_GAUGE,
     "The most GPU memory that the vGPU's engine has had at one time, from its arbiter.",
     COUNTERS(slice.vram_peak), IF_TOLD},
    {"vgpu_vgpu_gpu_seconds_total", METRIC_COUNTER,
     "GPU time used by the vGPU, if the GPU's driver reports it.", COUNTERS(drm.gpu_ns),
     .known = NUMBER(VgpuCounters, drm.known), .unit = NS_PER_SECOND},
    {"vgpu_vgpu_throttled_seconds_total", METRIC_COUNTER,
     "Time that the vGPU's own limits delayed it.", COUNTERS(slice.throttled_ns),
     .unit = NS_PER_SECOND},
    {"vgpu_vgpu_waited_seconds_total", METRIC_COUNTER,
     "Time that the vGPU's work waited for other vGPUs'.", COUNTERS(slice.waited_ns), IF_TOLD,
     .unit = NS_PER_SECOND},
};

static void add_info(Exposition *exposition, const VgpuTable *table)
{
    exposition_family(exposition, "vgpu_vgpu_info", METRIC_GAUGE, "Description of the vGPU.");
    for (guint i = 0; i < table->rows->len; i++) {
        const VgpuRow *row = &g_array_index(table->vgpus, VgpuRow, i);
        const char *type = row->counters->vgpu->type;

        exposition_count_of(exposition, g_array_index(table->rows, MetricRow, i).labels, 1, "type",
                            type ? type : "", "class",
                            row->slice ? slice_class_name(row->slice->class) : "", "owner",
                            row->slice ? row->slice->owner : "", NULL);
    }
}

static void add_spilled(Exposition *exposition, const VgpuTable *table)
{
    exposition_family(exposition, "vgpu_vgpu_vram_spilled_bytes", METRIC_GAUGE,
                      "Memory in use beyond the vGPU's GPU memory, by kind: spill to host memory, "
                      "or the GPU's driver.");
    for (guint i = 0; i < table->rows->len; i++) {
        const VgpuCounters *counters = g_array_index(table->vgpus, VgpuRow, i).counters;
        const SliceUse *use = &counters->slice;

        if (counters->slice_known && !g_str_equal(use->spill_kind, "none"))
            exposition_count_of(exposition, g_array_index(table->rows, MetricRow, i).labels,
                                use->spilled, "by", use->spill_kind, NULL);
    }
}

void add_vgpu_metrics(Exposition *exposition, const VgpuTable *table)
{
    add_info(exposition, table);
    exposition_add(exposition, vgpu_metrics, G_N_ELEMENTS(vgpu_metrics), table->rows);
    add_spilled(exposition, table);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

#define SHARE(field) .part = 0, .value = NUMBER(Share, field)

static const Metric tenant_metrics[] = {
    {"vgpu_tenant_vgpus", METRIC_GAUGE, "vGPUs and containers' slices of the tenant.",
     SHARE(vgpus)},
    {"vgpu_tenant_vram_promised_bytes", METRIC_GAUGE, "GPU memory promised to the tenant.",
     SHARE(vram)},
    {"vgpu_tenant_compute_promised_ratio", METRIC_GAUGE,
     "Compute promised to the tenant; 1 is a whole GPU.", SHARE(compute), .unit = 100},
};

void add_tenant_metrics(Exposition *exposition, const VgpuTable *table)
{
    g_autofree char **names = (char **)g_hash_table_get_keys_as_array(table->tenants, NULL);
    g_autoptr(GArray) rows = metric_rows_new();

    qsort(names, g_strv_length(names), sizeof(*names), by_name);
    for (guint i = 0; names[i]; i++) {
        MetricRow row = {.labels = exposition_labels("tenant", names[i], NULL),
                         .parts = {g_hash_table_lookup(table->tenants, names[i])}};

        g_array_append_val(rows, row);
    }
    exposition_add(exposition, tenant_metrics, G_N_ELEMENTS(tenant_metrics), rows);
}
