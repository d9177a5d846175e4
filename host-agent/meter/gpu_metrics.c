/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/gpu_metrics.h"

#define UJ_PER_JOULE  1e6
#define NS_PER_SECOND 1e9

/* A GPU's structures, by number. */
enum { OF_GPU, OF_SHARE };

#define GPU(field)   .part = OF_GPU, .value = NUMBER(GpuMetrics, field)
#define SHARE(field) .part = OF_SHARE, .value = NUMBER(Share, field)
#define IF(field)    .known = NUMBER(GpuMetrics, field)

static const Metric gpu_metrics[] = {
    {"vgpu_gpu_vram_bytes", METRIC_GAUGE, "Memory of the GPU.", GPU(vram), IF(vram)},
    {"vgpu_gpu_vram_used_bytes", METRIC_GAUGE,
     "Memory in use, if known, also by programs outside of slices.", GPU(vram_used),
     IF(vram_used_known)},
    {"vgpu_gpu_vram_capacity_bytes", METRIC_GAUGE, "Memory that may be promised to vGPUs.",
     GPU(capacity), IF(capacity)},
    {"vgpu_gpu_vram_promised_bytes", METRIC_GAUGE, "Memory promised to vGPUs.", SHARE(vram)},
    {"vgpu_gpu_vram_mark_bytes", METRIC_GAUGE, "Memory that should be free.", GPU(mark), IF(mark)},
    {"vgpu_gpu_compute_promised_ratio", METRIC_GAUGE,
     "Part of the GPU's compute promised to vGPUs.", SHARE(compute), .unit = 100},
    {"vgpu_gpu_vgpus", METRIC_GAUGE, "vGPUs on the GPU.", SHARE(vgpus)},
    {"vgpu_gpu_healthy", METRIC_GAUGE, "0: unhealthy; no new work is placed on it.", GPU(healthy)},
    {"vgpu_gpu_temperature_celsius", METRIC_GAUGE, "Temperature of the GPU's hottest sensor.",
     GPU(readings.temperature), IF(readings.has_temperature), .unit = 1000},
    {"vgpu_gpu_power_watts", METRIC_GAUGE, "Power that the GPU draws.", GPU(readings.power),
     IF(readings.has_power), .unit = 1e6},
    {"vgpu_gpu_busy_ratio", METRIC_GAUGE,
     "Part of the time in which the GPU computes, from its driver.", GPU(readings.busy),
     IF(readings.has_busy), .unit = 100},
    {"vgpu_gpu_link_width_lanes", METRIC_GAUGE, "Lanes of the PCI Express link.",
     GPU(readings.link_width), IF(readings.link_width_max)},
    {"vgpu_gpu_link_width_max_lanes", METRIC_GAUGE, "Maximum lanes of the PCI Express link.",
     GPU(readings.link_width_max), IF(readings.link_width_max)},
    {"vgpu_gpu_energy_joules_total", METRIC_COUNTER,
     "Energy that the GPU has used, if its driver counts it.", GPU(readings.energy),
     IF(readings.has_energy), .unit = UJ_PER_JOULE},
};

static void add_errors(Exposition *exposition, const GArray *gpus, const GArray *rows)
{
    exposition_family(exposition, "vgpu_gpu_aer_errors_total", METRIC_COUNTER,
                      "Errors on the PCI Express link that the GPU has reported.");
    for (guint i = 0; i < gpus->len; i++) {
        const GpuReadings *readings = &g_array_index(gpus, GpuMetrics, i).readings;
        const char *labels = g_array_index(rows, MetricRow, i).labels;

        if (!readings->has_aer)
            continue;
        exposition_count_of(exposition, labels, readings->aer_fatal, "severity", "fatal", NULL);
        exposition_count_of(exposition, labels, readings->aer_nonfatal, "severity", "nonfatal",
                            NULL);
        exposition_count_of(exposition, labels, readings->aer_correctable, "severity",
                            "correctable", NULL);
    }
    exposition_family(exposition, "vgpu_gpu_ecc_errors_total", METRIC_COUNTER,
                      "Errors in the GPU's memories that ECC has found.");
    for (guint i = 0; i < gpus->len; i++) {
        const GpuReadings *readings = &g_array_index(gpus, GpuMetrics, i).readings;
        const char *labels = g_array_index(rows, MetricRow, i).labels;

        if (!readings->has_ecc)
            continue;
        exposition_count_of(exposition, labels, readings->ecc_uncorrectable, "kind",
                            "uncorrectable", NULL);
        exposition_count_of(exposition, labels, readings->ecc_correctable, "kind", "correctable",
                            NULL);
    }
}

static void add_findings(Exposition *exposition, const GArray *gpus, const GArray *rows)
{
    exposition_family(exposition, "vgpu_gpu_health_finding", METRIC_GAUGE,
                      "1 for each finding about the GPU; of grade notice nothing follows.");
    for (guint i = 0; i < gpus->len; i++) {
        const GpuHealth *health = g_array_index(gpus, GpuMetrics, i).health;

        for (HealthKind kind = 0; health && kind < HEALTH_KINDS; kind++)
            if (gpu_health_reason(health, kind))
                exposition_count_of(exposition, g_array_index(rows, MetricRow, i).labels, 1, "kind",
                                    health_kind_name(kind), "grade",
                                    health_grade_name(gpu_health_grade_of(health, kind)), NULL);
    }
}

static void add_gpu_info(Exposition *exposition, const GArray *gpus, const GArray *rows)
{
    exposition_family(exposition, "vgpu_gpu_info", METRIC_GAUGE, "Description of the GPU.");
    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_array_index(gpus, GpuMetrics, i).gpu;

        exposition_count_of(exposition, g_array_index(rows, MetricRow, i).labels, 1, "name",
                            gpu->name, "driver", gpu->pci->driver ? gpu->pci->driver : "", "mode",
                            gpu_mode_name(gpu->mode), NULL);
    }
}

void add_gpu_metrics(Exposition *exposition, const GArray *gpus, const VgpuTable *vgpus)
{
    g_autoptr(GArray) rows = metric_rows_new();

    for (guint i = 0; i < gpus->len; i++) {
        const GpuMetrics *gpu = &g_array_index(gpus, GpuMetrics, i);
        const char *address = gpu->gpu->pci->address;
        MetricRow row = {.labels = exposition_labels("gpu", address, NULL),
                         .parts = {[OF_GPU] = gpu, [OF_SHARE] = vgpu_table_of_gpu(vgpus, address)}};

        g_array_append_val(rows, row);
    }
    add_gpu_info(exposition, gpus, rows);
    exposition_add(exposition, gpu_metrics, G_N_ELEMENTS(gpu_metrics), rows);
    add_findings(exposition, gpus, rows);
    add_errors(exposition, gpus, rows);
}

/* Metrics of containers' slices that are no vGPUs. */

static void add_slice_info(Exposition *exposition, const GArray *slices, const GArray *rows)
{
    exposition_family(exposition, "vgpu_slice_info", METRIC_GAUGE,
                      "Description of the container's slice.");
    for (guint i = 0; i < slices->len; i++) {
        const SliceMetrics *metrics = &g_array_index(slices, SliceMetrics, i);
        const Slice *slice = metrics->slice;

        exposition_count_of(
            exposition, g_array_index(rows, MetricRow, i).labels, 1, "name", slice->name, "door",
            slice_transport_name(slice->transport), "class", slice_class_name(slice->class),
            "container", metrics->container ? metrics->container : "", "owner", slice->owner, NULL);
    }
}

/* By it, who knows of containers, such as kube-state-metrics, finds those of a slice. */
static void add_slice_containers(Exposition *exposition, const GArray *slices)
{
    exposition_family(exposition, "vgpu_slice_container_info", METRIC_GAUGE,
                      "A container that uses the slice, by the id that its runtime has for it.");
    for (guint i = 0; i < slices->len; i++) {
        const SliceMetrics *metrics = &g_array_index(slices, SliceMetrics, i);

        for (guint k = 0; metrics->containers && metrics->containers[k]; k++)
            exposition_count_of(exposition, "", 1, "slice", metrics->slice->uuid, "gpu",
                                metrics->slice->gpu, "id", metrics->containers[k], NULL);
    }
}

/* A slice's structures, by number; OF_USE only if its arbiter tells them. */
enum { OF_METRICS, OF_SLICE, OF_USE };

#define METRICS(field) .part = OF_METRICS, .value = NUMBER(SliceMetrics, field)
#define SLICE(field)   .part = OF_SLICE, .value = NUMBER(Slice, field)
#define USE(field)     .part = OF_USE, .value = NUMBER(SliceUse, field)

static const Metric slice_metrics[] = {
    {"vgpu_slice_vram_promised_bytes", METRIC_GAUGE, "GPU memory promised to the slice.",
     SLICE(vram)},
    {"vgpu_slice_processes", METRIC_GAUGE, "Processes that use the GPU for the slice.",
     USE(members)},
    {"vgpu_slice_ungoverned_processes", METRIC_GAUGE,
     "Processes of the slice that use the GPU without the slice's governor.", METRICS(ungoverned)},
    {"vgpu_slice_vram_used_bytes", METRIC_GAUGE, "GPU memory in use by the slice.", USE(vram_used)},
    {"vgpu_slice_vram_peak_bytes", METRIC_GAUGE,
     "The most GPU memory that the slice has had at one time.", USE(vram_peak)},
    {"vgpu_slice_ungoverned_vram_bytes", METRIC_GAUGE,
     "The part of the slice's GPU memory that no program has requested of the slice's governor.",
     USE(vram_ungoverned)},
    {"vgpu_slice_submissions_total", METRIC_COUNTER, "Submissions of work to the GPU.",
     USE(submissions)},
    {"vgpu_slice_gpu_seconds_total", METRIC_COUNTER,
     "Measured GPU time of the slice, without that when it was alone on its GPU.", USE(gpu_ns),
     .unit = NS_PER_SECOND},
    {"vgpu_slice_ungoverned_gpu_seconds_total", METRIC_COUNTER,
     "The part of the slice's GPU time that was without the slice's governor.", USE(ungoverned_ns),
     .unit = NS_PER_SECOND},
    {"vgpu_slice_waited_seconds_total", METRIC_COUNTER,
     "Time that the slice's work waited for others'.", USE(waited_ns), .unit = NS_PER_SECOND},
    {"vgpu_slice_throttled_seconds_total", METRIC_COUNTER,
     "Time that the slice's own limits delayed it.", USE(throttled_ns), .unit = NS_PER_SECOND},
    {"vgpu_slice_resident_bytes", METRIC_GAUGE, "The slice's memory that is on the GPU.",
     USE(resident)},
    {"vgpu_slice_unmovable_bytes", METRIC_GAUGE,
     "The part of the slice's memory on the GPU that cannot move.", USE(unmovable)},
    {"vgpu_slice_displaced_bytes", METRIC_GAUGE,
     "The slice's GPU memory that is in the host's memory, because others use the GPU.",
     USE(displaced)},
    {"vgpu_slice_moved_bytes_total", METRIC_COUNTER,
     "GPU memory of the slice that went to the host's memory or came back.", USE(moved)},
    {"vgpu_slice_memory_waited_seconds_total", METRIC_COUNTER,
     "Time that the slice's programs waited for their memory.", USE(memory_waited_ns),
     .unit = NS_PER_SECOND},
    {"vgpu_slice_alone_gpu_seconds_total", METRIC_COUNTER,
     "GPU time of the slice when it was alone on its GPU, from the GPU's driver, since vgpu-meter "
     "started.",
     USE(alone_ns), .known = NUMBER(SliceUse, alone_known), .unit = NS_PER_SECOND},
};

void add_slice_metrics(Exposition *exposition, const GArray *slices)
{
    g_autoptr(GArray) rows = metric_rows_new();

    for (guint i = 0; i < slices->len; i++) {
        const SliceMetrics *metrics = &g_array_index(slices, SliceMetrics, i);
        const Slice *slice = metrics->slice;
        MetricRow row = {.parts = {metrics, slice, metrics->use}};

        row.labels = exposition_labels("slice", slice->uuid, "gpu", slice->gpu, "tenant",
                                       slice->tenant, NULL);
        g_array_append_val(rows, row);
    }
    add_slice_info(exposition, slices, rows);
    add_slice_containers(exposition, slices);
    exposition_add(exposition, slice_metrics, G_N_ELEMENTS(slice_metrics), rows);
}
