/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/gpu_metrics.h"

/* A value of a GPU. FALSE: it is not known. */
typedef gboolean GpuValue(const GpuMetrics *gpu, const Share *share, double *value);

static gboolean vram(const GpuMetrics *gpu, const Share *share, double *value)
{
    (void)share;
    *value = (double)gpu->vram;
    return gpu->vram != 0;
}

static gboolean capacity(const GpuMetrics *gpu, const Share *share, double *value)
{
    (void)share;
    *value = (double)gpu->capacity;
    return gpu->capacity != 0;
}

static gboolean vram_used_of_gpu(const GpuMetrics *gpu, const Share *share, double *value)
{
    (void)share;
    *value = (double)gpu->vram_used;
    return gpu->vram_used_known;
}

static gboolean vram_mark(const GpuMetrics *gpu, const Share *share, double *value)
{
    (void)share;
    *value = (double)gpu->mark;
    return gpu->mark != 0;
}

static gboolean vram_promised(const GpuMetrics *gpu, const Share *share, double *value)
{
    (void)gpu;
    *value = (double)share->vram;
    return TRUE;
}

static gboolean compute_promised(const GpuMetrics *gpu, const Share *share, double *value)
{
    (void)gpu;
    *value = share->compute / 100.0;
    return TRUE;
}

static gboolean vgpus(const GpuMetrics *gpu, const Share *share, double *value)
{
    (void)gpu;
    *value = share->vgpus;
    return TRUE;
}

static gboolean healthy(const GpuMetrics *gpu, const Share *share, double *value)
{
    (void)share;
    *value = gpu->healthy;
    return TRUE;
}

static gboolean temperature(const GpuMetrics *gpu, const Share *share, double *value)
{
    (void)share;
    *value = gpu->readings.temperature / 1000.0;
    return gpu->readings.has_temperature;
}

static gboolean power(const GpuMetrics *gpu, const Share *share, double *value)
{
    (void)share;
    *value = (double)gpu->readings.power / 1e6;
    return gpu->readings.has_power;
}

static gboolean busy(const GpuMetrics *gpu, const Share *share, double *value)
{
    (void)share;
    *value = gpu->readings.busy / 100.0;
    return gpu->readings.has_busy;
}

static gboolean link_width(const GpuMetrics *gpu, const Share *share, double *value)
{
    (void)share;
    *value = gpu->readings.link_width;
    return gpu->readings.link_width_max != 0;
}

static gboolean link_width_max(const GpuMetrics *gpu, const Share *share, double *value)
{
    (void)share;
    *value = gpu->readings.link_width_max;
    return gpu->readings.link_width_max != 0;
}

static const struct {
    const char *name;
    const char *help;
    GpuValue *value;
} gauges[] = {
    {"vgpu_gpu_vram_bytes", "Memory of the GPU.", vram},
    {"vgpu_gpu_vram_used_bytes", "Memory in use, if known, also by programs outside of slices.",
     vram_used_of_gpu},
    {"vgpu_gpu_vram_capacity_bytes", "Memory that may be promised to vGPUs.", capacity},
    {"vgpu_gpu_vram_promised_bytes", "Memory promised to vGPUs.", vram_promised},
    {"vgpu_gpu_vram_mark_bytes", "Memory that should be free.", vram_mark},
    {"vgpu_gpu_compute_promised_ratio", "Part of the GPU's compute promised to vGPUs.",
     compute_promised},
    {"vgpu_gpu_vgpus", "vGPUs on the GPU.", vgpus},
    {"vgpu_gpu_healthy", "0: unhealthy; no new work is placed on it.", healthy},
    {"vgpu_gpu_temperature_celsius", "Temperature of the GPU's hottest sensor.", temperature},
    {"vgpu_gpu_power_watts", "Power that the GPU draws.", power},
    {"vgpu_gpu_busy_ratio", "Part of the time in which the GPU computes, from its driver.", busy},
    {"vgpu_gpu_link_width_lanes", "Lanes of the PCI Express link.", link_width},
    {"vgpu_gpu_link_width_max_lanes", "Maximum lanes of the PCI Express link.", link_width_max},
};

static void add_gauges(Exposition *exposition, const GArray *gpus, const VgpuTable *table,
                       GPtrArray *labels)
{
    for (guint i = 0; i < G_N_ELEMENTS(gauges); i++) {
        exposition_family(exposition, gauges[i].name, METRIC_GAUGE, gauges[i].help);
        for (guint k = 0; k < gpus->len; k++) {
            const GpuMetrics *gpu = &g_array_index(gpus, GpuMetrics, k);
            const Share share = vgpu_table_of_gpu(table, gpu->gpu->pci->address);
            double value;

            if (gauges[i].value(gpu, &share, &value))
                exposition_number(exposition, g_ptr_array_index(labels, k), value);
        }
    }
}

static void add_kind(Exposition *exposition, const char *labels, const char *label,
                     const char *kind, guint64 value)
{
    g_autoptr(GString) text = g_string_new(labels);

    exposition_label(text, label, kind);
    exposition_count(exposition, text->str, value);
}

static void add_errors(Exposition *exposition, const GArray *gpus, GPtrArray *labels)
{
    exposition_family(exposition, "vgpu_gpu_aer_errors_total", METRIC_COUNTER,
                      "Errors on the PCI Express link that the GPU has reported.");
    for (guint i = 0; i < gpus->len; i++) {
        const GpuReadings *readings = &g_array_index(gpus, GpuMetrics, i).readings;
        const char *at = g_ptr_array_index(labels, i);

        if (!readings->has_aer)
            continue;
        add_kind(exposition, at, "severity", "fatal", readings->aer_fatal);
        add_kind(exposition, at, "severity", "nonfatal", readings->aer_nonfatal);
        add_kind(exposition, at, "severity", "correctable", readings->aer_correctable);
    }
    exposition_family(exposition, "vgpu_gpu_ecc_errors_total", METRIC_COUNTER,
                      "Errors in the GPU's memories that ECC has found.");
    for (guint i = 0; i < gpus->len; i++) {
        const GpuReadings *readings = &g_array_index(gpus, GpuMetrics, i).readings;
        const char *at = g_ptr_array_index(labels, i);

        if (!readings->has_ecc)
            continue;
        add_kind(exposition, at, "kind", "uncorrectable", readings->ecc_uncorrectable);
        add_kind(exposition, at, "kind", "correctable", readings->ecc_correctable);
    }
}

static void add_energy(Exposition *exposition, const GArray *gpus, GPtrArray *labels)
{
    exposition_family(exposition, "vgpu_gpu_energy_joules_total", METRIC_COUNTER,
                      "Energy that the GPU has used, if its driver counts it.");
    for (guint i = 0; i < gpus->len; i++) {
        const GpuReadings *readings = &g_array_index(gpus, GpuMetrics, i).readings;

        if (readings->has_energy)
            exposition_number(exposition, g_ptr_array_index(labels, i),
                              (double)readings->energy / 1e6);
    }
}

static void add_findings(Exposition *exposition, const GArray *gpus, GPtrArray *labels)
{
    exposition_family(exposition, "vgpu_gpu_health_finding", METRIC_GAUGE,
                      "1 for each finding about the GPU; of grade notice nothing follows.");
    for (guint i = 0; i < gpus->len; i++) {
        const GpuHealth *health = g_array_index(gpus, GpuMetrics, i).health;

        for (guint k = 0; health && k < HEALTH_KINDS; k++) {
            g_autoptr(GString) text = g_string_new(g_ptr_array_index(labels, i));
            HealthGrade grade = gpu_health_grade_of(health, (HealthKind)k);

            if (!gpu_health_reason(health, (HealthKind)k))
                continue;
            exposition_label(text, "kind", health_kind_name((HealthKind)k));
            exposition_label(text, "grade", health_grade_name(grade));
            exposition_count(exposition, text->str, 1);
        }
    }
}

static void add_gpu_info(Exposition *exposition, const GArray *gpus, GPtrArray *labels)
{
    exposition_family(exposition, "vgpu_gpu_info", METRIC_GAUGE, "Description of the GPU.");
    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_array_index(gpus, GpuMetrics, i).gpu;
        g_autoptr(GString) text = g_string_new(g_ptr_array_index(labels, i));

        exposition_label(text, "name", gpu->name);
        exposition_label(text, "driver", gpu->pci->driver ? gpu->pci->driver : "");
        exposition_label(text, "mode", gpu_mode_name(gpu->mode));
        exposition_count(exposition, text->str, 1);
    }
}

void add_gpu_metrics(Exposition *exposition, const GArray *gpus, const VgpuTable *vgpus)
{
    g_autoptr(GPtrArray) labels = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < gpus->len; i++) {
        GString *text = g_string_new(NULL);

        exposition_label(text, "gpu", g_array_index(gpus, GpuMetrics, i).gpu->pci->address);
        g_ptr_array_add(labels, g_string_free(text, FALSE));
    }
    add_gpu_info(exposition, gpus, labels);
    add_gauges(exposition, gpus, vgpus, labels);
    add_findings(exposition, gpus, labels);
    add_errors(exposition, gpus, labels);
    add_energy(exposition, gpus, labels);
}

/* Metrics of containers' slices that are no vGPUs. */

#define NS_PER_SECOND 1e9

static char *labels_of(const Slice *slice)
{
    GString *labels = g_string_new(NULL);

    exposition_label(labels, "slice", slice->uuid);
    exposition_label(labels, "gpu", slice->gpu);
    exposition_label(labels, "tenant", slice->tenant);
    return g_string_free(labels, FALSE);
}

static void add_slice_info(Exposition *exposition, const GArray *slices)
{
    exposition_family(exposition, "vgpu_slice_info", METRIC_GAUGE,
                      "Description of the container's slice.");
    for (guint i = 0; i < slices->len; i++) {
        const SliceMetrics *metrics = &g_array_index(slices, SliceMetrics, i);
        const Slice *slice = metrics->slice;
        g_autofree char *text = labels_of(slice);
        g_autoptr(GString) labels = g_string_new(text);

        exposition_label(labels, "name", slice->name);
        exposition_label(labels, "door", slice_transport_name(slice->transport));
        exposition_label(labels, "class", slice_class_name(slice->class));
        exposition_label(labels, "container", metrics->container ? metrics->container : "");
        exposition_label(labels, "owner", slice->owner);
        exposition_count(exposition, labels->str, 1);
    }
}

/* By it, who knows of containers, such as kube-state-metrics, finds those of a slice. */
static void add_slice_containers(Exposition *exposition, const GArray *slices)
{
    exposition_family(exposition, "vgpu_slice_container_info", METRIC_GAUGE,
                      "A container that uses the slice, by the id that its runtime has for it.");
    for (guint i = 0; i < slices->len; i++) {
        const SliceMetrics *metrics = &g_array_index(slices, SliceMetrics, i);

        for (guint k = 0; metrics->containers && metrics->containers[k]; k++) {
            g_autoptr(GString) labels = g_string_new(NULL);

            exposition_label(labels, "slice", metrics->slice->uuid);
            exposition_label(labels, "gpu", metrics->slice->gpu);
            exposition_label(labels, "id", metrics->containers[k]);
            exposition_count(exposition, labels->str, 1);
        }
    }
}

static double promised(const SliceMetrics *metrics)
{
    return (double)metrics->slice->vram;
}

static double processes(const SliceMetrics *metrics)
{
    return metrics->use->members;
}

static double ungoverned(const SliceMetrics *metrics)
{
    return metrics->ungoverned;
}

static double slice_vram_used(const SliceMetrics *metrics)
{
    return (double)metrics->use->vram_used;
}

static double slice_vram_peak(const SliceMetrics *metrics)
{
    return (double)metrics->use->vram_peak;
}

static double slice_vram_ungoverned(const SliceMetrics *metrics)
{
    return (double)metrics->use->vram_ungoverned;
}

static double submissions(const SliceMetrics *metrics)
{
    return (double)metrics->use->submissions;
}

static double gpu_seconds(const SliceMetrics *metrics)
{
    return (double)metrics->use->gpu_ns / NS_PER_SECOND;
}

static double ungoverned_seconds(const SliceMetrics *metrics)
{
    return (double)metrics->use->ungoverned_ns / NS_PER_SECOND;
}

static double waited_seconds(const SliceMetrics *metrics)
{
    return (double)metrics->use->waited_ns / NS_PER_SECOND;
}

static double throttled_seconds(const SliceMetrics *metrics)
{
    return (double)metrics->use->throttled_ns / NS_PER_SECOND;
}

static double on_gpu(const SliceMetrics *metrics)
{
    return (double)metrics->use->resident;
}

static double unmovable(const SliceMetrics *metrics)
{
    return (double)metrics->use->unmovable;
}

static double displaced(const SliceMetrics *metrics)
{
    return (double)metrics->use->displaced;
}

static double moved(const SliceMetrics *metrics)
{
    return (double)metrics->use->moved;
}

static double memory_waited_seconds(const SliceMetrics *metrics)
{
    return (double)metrics->use->memory_waited_ns / NS_PER_SECOND;
}

static const struct {
    const char *name;
    MetricType type;
    const char *help;
    gboolean told; /* by the arbiter */
    double (*value)(const SliceMetrics *metrics);
} families[] = {
    {"vgpu_slice_vram_promised_bytes", METRIC_GAUGE, "GPU memory promised to the slice.", FALSE,
     promised},
    {"vgpu_slice_processes", METRIC_GAUGE, "Processes that use the GPU for the slice.", TRUE,
     processes},
    {"vgpu_slice_ungoverned_processes", METRIC_GAUGE,
     "Processes of the slice that use the GPU without the slice's governor.", FALSE, ungoverned},
    {"vgpu_slice_vram_used_bytes", METRIC_GAUGE, "GPU memory in use by the slice.", TRUE,
     slice_vram_used},
    {"vgpu_slice_vram_peak_bytes", METRIC_GAUGE,
     "The most GPU memory that the slice has had at one time.", TRUE, slice_vram_peak},
    {"vgpu_slice_ungoverned_vram_bytes", METRIC_GAUGE,
     "The part of the slice's GPU memory that no program has requested of the slice's governor.",
     TRUE, slice_vram_ungoverned},
    {"vgpu_slice_submissions_total", METRIC_COUNTER, "Submissions of work to the GPU.", TRUE,
     submissions},
    {"vgpu_slice_gpu_seconds_total", METRIC_COUNTER,
     "Measured GPU time of the slice, without that when it was alone on its GPU.", TRUE,
     gpu_seconds},
    {"vgpu_slice_ungoverned_gpu_seconds_total", METRIC_COUNTER,
     "The part of the slice's GPU time that was without the slice's governor.", TRUE,
     ungoverned_seconds},
    {"vgpu_slice_waited_seconds_total", METRIC_COUNTER,
     "Time that the slice's work waited for others'.", TRUE, waited_seconds},
    {"vgpu_slice_throttled_seconds_total", METRIC_COUNTER,
     "Time that the slice's own limits delayed it.", TRUE, throttled_seconds},
    {"vgpu_slice_resident_bytes", METRIC_GAUGE, "The slice's memory that is on the GPU.", TRUE,
     on_gpu},
    {"vgpu_slice_unmovable_bytes", METRIC_GAUGE,
     "The part of the slice's memory on the GPU that cannot move.", TRUE, unmovable},
    {"vgpu_slice_displaced_bytes", METRIC_GAUGE,
     "The slice's GPU memory that is in the host's memory, because others use the GPU.", TRUE,
     displaced},
    {"vgpu_slice_moved_bytes_total", METRIC_COUNTER,
     "GPU memory of the slice that went to the host's memory or came back.", TRUE, moved},
    {"vgpu_slice_memory_waited_seconds_total", METRIC_COUNTER,
     "Time that the slice's programs waited for their memory.", TRUE, memory_waited_seconds},
};

/* If the GPU's driver reports it: a 0 would look like an idle slice. */
static void add_alone(Exposition *exposition, const GArray *slices)
{
    exposition_family(exposition, "vgpu_slice_alone_gpu_seconds_total", METRIC_COUNTER,
                      "GPU time of the slice when it was alone on its GPU, from the GPU's driver, "
                      "since vgpu-meter started.");
    for (guint i = 0; i < slices->len; i++) {
        const SliceMetrics *metrics = &g_array_index(slices, SliceMetrics, i);
        g_autofree char *labels = labels_of(metrics->slice);

        if (metrics->use && metrics->use->alone_known)
            exposition_number(exposition, labels, (double)metrics->use->alone_ns / NS_PER_SECOND);
    }
}

void add_slice_metrics(Exposition *exposition, const GArray *slices)
{
    add_slice_info(exposition, slices);
    add_slice_containers(exposition, slices);
    for (guint i = 0; i < G_N_ELEMENTS(families); i++) {
        exposition_family(exposition, families[i].name, families[i].type, families[i].help);
        for (guint k = 0; k < slices->len; k++) {
            const SliceMetrics *metrics = &g_array_index(slices, SliceMetrics, k);
            g_autofree char *labels = labels_of(metrics->slice);

            if (metrics->use || !families[i].told)
                exposition_number(exposition, labels, families[i].value(metrics));
        }
    }
    add_alone(exposition, slices);
}
