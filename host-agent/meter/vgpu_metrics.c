/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/vgpu_metrics.h"

#include <string.h>

/* Prometheus's text exposition format, version 0.0.4. */

#define DIGITS 20 /* digits of the largest guint64 */

struct Exposition {
    GString *text;
    const char *name;
    gsize name_length;
};

Exposition *exposition_new(void)
{
    Exposition *exposition = g_new0(Exposition, 1);

    exposition->text = g_string_sized_new(64 * 1024);
    return exposition;
}

char *exposition_end(Exposition *exposition, gsize *length)
{
    GString *text = exposition->text;

    g_free(exposition);
    *length = text->len;
    return g_string_free(text, FALSE);
}

void exposition_family(Exposition *exposition, const char *name, MetricType type, const char *help)
{
    exposition->name = name;
    exposition->name_length = strlen(name);
    g_string_append_printf(exposition->text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
                           type == METRIC_COUNTER ? "counter" : "gauge");
}

static void begin_sample(Exposition *exposition, const char *labels)
{
    GString *text = exposition->text;

    g_string_append_len(text, exposition->name, (gssize)exposition->name_length);
    if (labels[0]) {
        g_string_append_c(text, '{');
        g_string_append(text, labels);
        g_string_append_c(text, '}');
    }
    g_string_append_c(text, ' ');
}

/*
 * Without printf, which would take most of the time: a host with a thousand vGPUs has ten thousand
 * samples.
 */
void exposition_count(Exposition *exposition, const char *labels, guint64 value)
{
    char digits[DIGITS];
    guint at = DIGITS;

    begin_sample(exposition, labels);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    g_string_append_len(exposition->text, digits + at, DIGITS - at);
    g_string_append_c(exposition->text, '\n');
}

void exposition_number(Exposition *exposition, const char *labels, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    begin_sample(exposition, labels);
    g_string_append(exposition->text, g_ascii_formatd(text, sizeof(text), "%.15g", value));
    g_string_append_c(exposition->text, '\n');
}

void exposition_label(GString *labels, const char *name, const char *value)
{
    if (labels->len)
        g_string_append_c(labels, ',');
    g_string_append(labels, name);
    g_string_append(labels, "=\"");
    for (; *value; value++) {
        if (*value == '\n')
            g_string_append(labels, "\\n");
        else if (*value == '"' || *value == '\\')
            g_string_append_printf(labels, "\\%c", *value);
        else
            g_string_append_c(labels, *value);
    }
    g_string_append_c(labels, '"');
}

#define NS_PER_SECOND 1e9

/* A vGPU with the labels of all its samples. */
typedef struct {
    const VgpuCounters *counters;
    const Slice *slice;
    char *labels;
} Row;

struct VgpuTable {
    GArray *rows;        /* of Row */
    GHashTable *gpus;    /* address to Share */
    GHashTable *tenants; /* name to Share */
};

static const char *tenant_of(const Row *row)
{
    return row->slice ? row->slice->tenant : "";
}

static char *labels_of(const Row *row)
{
    GString *labels = g_string_sized_new(128);

    exposition_label(labels, "vgpu", row->counters->vgpu->uuid);
    exposition_label(labels, "gpu", row->counters->vgpu->gpu);
    exposition_label(labels, "tenant", tenant_of(row));
    return g_string_free(labels, FALSE);
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

static void add_row_to(const VgpuTable *table, const Row *row)
{
    const Vgpu *vgpu = row->counters->vgpu;
    guint compute = row->slice ? row->slice->compute : 0;

    add_to(table->gpus, vgpu->gpu, vgpu->vram, compute);
    add_to(table->tenants, tenant_of(row), vgpu->vram, compute);
}

static void clear_row(void *row)
{
    g_free(((Row *)row)->labels);
}

VgpuTable *vgpu_table_new(const HostMetrics *host)
{
    VgpuTable *table = g_new0(VgpuTable, 1);

    table->rows = g_array_sized_new(FALSE, FALSE, sizeof(Row), host->vgpus->len);
    g_array_set_clear_func(table->rows, clear_row);
    table->gpus = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    table->tenants = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    for (guint i = 0; i < host->vgpus->len; i++) {
        Row row = {.counters = g_ptr_array_index(host->vgpus, i)};

        row.slice = host->slice(row.counters->vgpu->uuid, host->data);
        row.labels = labels_of(&row);
        add_row_to(table, &row);
        g_array_append_val(table->rows, row);
    }
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
    g_hash_table_unref(table->gpus);
    g_hash_table_unref(table->tenants);
    g_free(table);
}

Share vgpu_table_of_gpu(const VgpuTable *table, const char *address)
{
    const Share *share = g_hash_table_lookup(table->gpus, address);

    return share ? *share : (Share){0};
}

static guint64 promised(const VgpuCounters *c)
{
    return c->vgpu->vram;
}

static guint64 is_running(const VgpuCounters *c)
{
    return g_str_equal(c->vgpu->device, "running");
}

static guint64 engine_is_ready(const VgpuCounters *c)
{
    return g_str_equal(c->vgpu->engine, "ready");
}

static guint64 published(const VgpuCounters *c)
{
    return c->window_published;
}

static guint64 pinned(const VgpuCounters *c)
{
    return c->pinned;
}

static guint64 requests(const VgpuCounters *c)
{
    return c->vgpu->requests;
}

static guint64 doorbells(const VgpuCounters *c)
{
    return c->vgpu->doorbells;
}

static guint64 interrupts(const VgpuCounters *c)
{
    return c->vgpu->interrupts;
}

static guint64 window_faults(const VgpuCounters *c)
{
    return c->window_faults;
}

static guint64 engine_losses(const VgpuCounters *c)
{
    return c->vgpu->engine_losses;
}

static const struct {
    const char *name;
    MetricType type;
    const char *help;
    guint64 (*value)(const VgpuCounters *counters);
} counts[] = {
    {"vgpu_vgpu_vram_promised_bytes", METRIC_GAUGE, "GPU memory promised to the vGPU.", promised},
    {"vgpu_vgpu_running", METRIC_GAUGE, "1: the guest's driver is up.", is_running},
    {"vgpu_vgpu_engine_ready", METRIC_GAUGE, "1: the vGPU's engine is ready.", engine_is_ready},
    {"vgpu_vgpu_window_published_bytes", METRIC_GAUGE, "Published part of the window.", published},
    {"vgpu_vgpu_pinned_bytes", METRIC_GAUGE, "Guest memory that is pinned for resources.", pinned},
    {"vgpu_vgpu_requests_total", METRIC_COUNTER, "virtio-gpu requests given to the engine.",
     requests},
    {"vgpu_vgpu_doorbells_total", METRIC_COUNTER, "Notifications by the guest's driver.",
     doorbells},
    {"vgpu_vgpu_interrupts_total", METRIC_COUNTER, "Interrupts to the guest.", interrupts},
    {"vgpu_vgpu_window_faults_total", METRIC_COUNTER, "Page faults in the window.", window_faults},
    {"vgpu_vgpu_engine_losses_total", METRIC_COUNTER,
     "Engines that were lost while a guest used them.", engine_losses},
};

static void add_counts(Exposition *exposition, const VgpuTable *table)
{
    for (guint i = 0; i < G_N_ELEMENTS(counts); i++) {
        exposition_family(exposition, counts[i].name, counts[i].type, counts[i].help);
        for (guint k = 0; k < table->rows->len; k++) {
            const Row *row = &g_array_index(table->rows, Row, k);

            exposition_count(exposition, row->labels, counts[i].value(row->counters));
        }
    }
}

static void add_info(Exposition *exposition, const VgpuTable *table)
{
    exposition_family(exposition, "vgpu_vgpu_info", METRIC_GAUGE, "Description of the vGPU.");
    for (guint i = 0; i < table->rows->len; i++) {
        const Row *row = &g_array_index(table->rows, Row, i);
        const char *type = row->counters->vgpu->type;
        g_autoptr(GString) labels = g_string_new(row->labels);

        exposition_label(labels, "type", type ? type : "");
        exposition_label(labels, "class", row->slice ? slice_class_name(row->slice->class) : "");
        exposition_label(labels, "owner", row->slice ? row->slice->owner : "");
        exposition_count(exposition, labels->str, 1);
    }
}

/* Seconds if @known; otherwise a 0 would look like an idle vGPU. */
static void add_seconds(Exposition *exposition, const VgpuTable *table, const char *name,
                        const char *help, gboolean (*value)(const VgpuCounters *, guint64 *ns))
{
    exposition_family(exposition, name, METRIC_COUNTER, help);
    for (guint i = 0; i < table->rows->len; i++) {
        const Row *row = &g_array_index(table->rows, Row, i);
        guint64 ns;

        if (value(row->counters, &ns))
            exposition_number(exposition, row->labels, (double)ns / NS_PER_SECOND);
    }
}

static gboolean gpu_time(const VgpuCounters *counters, guint64 *ns)
{
    *ns = counters->drm.gpu_ns;
    return counters->drm.known;
}

static gboolean throttled_time(const VgpuCounters *counters, guint64 *ns)
{
    *ns = counters->slice.throttled_ns;
    return TRUE;
}

static gboolean waited_time(const VgpuCounters *counters, guint64 *ns)
{
    *ns = counters->slice.waited_ns;
    return counters->slice_known;
}

static void add_used(Exposition *exposition, const VgpuTable *table)
{
    exposition_family(exposition, "vgpu_vgpu_vram_used_bytes", METRIC_GAUGE,
                      "GPU memory in use by the vGPU's engine, from the GPU's driver or its "
                      "arbiter.");
    for (guint i = 0; i < table->rows->len; i++) {
        const Row *row = &g_array_index(table->rows, Row, i);
        guint64 bytes;

        if (counters_vram(row->counters, &bytes))
            exposition_count(exposition, row->labels, bytes);
    }
}

static void add_peak(Exposition *exposition, const VgpuTable *table)
{
    exposition_family(exposition, "vgpu_vgpu_vram_peak_bytes", METRIC_GAUGE,
                      "The most GPU memory that the vGPU's engine has had at one time, from its "
                      "arbiter.");
    for (guint i = 0; i < table->rows->len; i++) {
        const Row *row = &g_array_index(table->rows, Row, i);

        if (row->counters->slice_known)
            exposition_count(exposition, row->labels, row->counters->slice.vram_peak);
    }
}

static void add_spilled(Exposition *exposition, const VgpuTable *table)
{
    exposition_family(exposition, "vgpu_vgpu_vram_spilled_bytes", METRIC_GAUGE,
                      "Memory in use beyond the vGPU's GPU memory, by kind: spill to host memory, "
                      "or the GPU's driver.");
    for (guint i = 0; i < table->rows->len; i++) {
        const Row *row = &g_array_index(table->rows, Row, i);
        const SliceUse *use = &row->counters->slice;
        g_autoptr(GString) labels = g_string_new(row->labels);

        if (!row->counters->slice_known || g_str_equal(use->spill_kind, "none"))
            continue;
        exposition_label(labels, "by", use->spill_kind);
        exposition_count(exposition, labels->str, use->spilled);
    }
}

void add_vgpu_metrics(Exposition *exposition, const VgpuTable *table)
{
    add_info(exposition, table);
    add_counts(exposition, table);
    add_used(exposition, table);
    add_peak(exposition, table);
    add_spilled(exposition, table);
    add_seconds(exposition, table, "vgpu_vgpu_gpu_seconds_total",
                "GPU time used by the vGPU, if the GPU's driver reports it.", gpu_time);
    add_seconds(exposition, table, "vgpu_vgpu_throttled_seconds_total",
                "Time that the vGPU's own limits delayed it.", throttled_time);
    add_seconds(exposition, table, "vgpu_vgpu_waited_seconds_total",
                "Time that the vGPU's work waited for other vGPUs'.", waited_time);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_tenant_family(Exposition *exposition, const VgpuTable *table, char *const *names,
                              const char *family, const char *help,
                              void (*add)(Exposition *, const char *labels, const Share *))
{
    exposition_family(exposition, family, METRIC_GAUGE, help);
    for (guint i = 0; names[i]; i++) {
        g_autoptr(GString) labels = g_string_new(NULL);

        exposition_label(labels, "tenant", names[i]);
        add(exposition, labels->str, g_hash_table_lookup(table->tenants, names[i]));
    }
}

static void add_share_vgpus(Exposition *exposition, const char *labels, const Share *share)
{
    exposition_count(exposition, labels, share->vgpus);
}

static void add_share_vram(Exposition *exposition, const char *labels, const Share *share)
{
    exposition_count(exposition, labels, share->vram);
}

static void add_share_compute(Exposition *exposition, const char *labels, const Share *share)
{
    exposition_number(exposition, labels, share->compute / 100.0);
}

void add_tenant_metrics(Exposition *exposition, const VgpuTable *table)
{
    g_autofree char **names = (char **)g_hash_table_get_keys_as_array(table->tenants, NULL);

    qsort(names, g_strv_length(names), sizeof(*names), by_name);
    add_tenant_family(exposition, table, names, "vgpu_tenant_vgpus",
                      "vGPUs and containers' slices of the tenant.", add_share_vgpus);
    add_tenant_family(exposition, table, names, "vgpu_tenant_vram_promised_bytes",
                      "GPU memory promised to the tenant.", add_share_vram);
    add_tenant_family(exposition, table, names, "vgpu_tenant_compute_promised_ratio",
                      "Compute promised to the tenant; 1 is a whole GPU.", add_share_compute);
}
