/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/metrics/gpu_metrics.h"

#define NS_PER_SECOND 1e9

static char *labels_of(const Slice *slice)
{
    GString *labels = g_string_new(NULL);

    exposition_label(labels, "slice", slice->uuid);
    exposition_label(labels, "gpu", slice->gpu);
    exposition_label(labels, "tenant", slice->tenant);
    return g_string_free(labels, FALSE);
}

static void add_info(Exposition *exposition, const GArray *slices)
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
        exposition_count(exposition, labels->str, 1);
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

static double vram_used(const SliceMetrics *metrics)
{
    return (double)metrics->use->vram_used;
}

static double submissions(const SliceMetrics *metrics)
{
    return (double)metrics->use->submissions;
}

static double gpu_seconds(const SliceMetrics *metrics)
{
    return (double)metrics->use->gpu_ns / NS_PER_SECOND;
}

static double waited_seconds(const SliceMetrics *metrics)
{
    return (double)metrics->use->waited_ns / NS_PER_SECOND;
}

static double throttled_seconds(const SliceMetrics *metrics)
{
    return (double)metrics->use->throttled_ns / NS_PER_SECOND;
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
    {"vgpu_slice_vram_used_bytes", METRIC_GAUGE, "GPU memory in use by the slice.", TRUE, vram_used},
    {"vgpu_slice_submissions_total", METRIC_COUNTER, "Submissions of work to the GPU.", TRUE,
     submissions},
    {"vgpu_slice_gpu_seconds_total", METRIC_COUNTER,
     "Measured GPU time of the slice. Work that it did alone on its GPU is not measured.",
     TRUE, gpu_seconds},
    {"vgpu_slice_waited_seconds_total", METRIC_COUNTER,
     "Time that the slice's work waited for others'.", TRUE, waited_seconds},
    {"vgpu_slice_throttled_seconds_total", METRIC_COUNTER,
     "Time that the slice's own limits delayed it.", TRUE, throttled_seconds},
};

void add_slice_metrics(Exposition *exposition, const GArray *slices)
{
    add_info(exposition, slices);
    for (guint i = 0; i < G_N_ELEMENTS(families); i++) {
        exposition_family(exposition, families[i].name, families[i].type, families[i].help);
        for (guint k = 0; k < slices->len; k++) {
            const SliceMetrics *metrics = &g_array_index(slices, SliceMetrics, k);
            g_autofree char *labels = labels_of(metrics->slice);

            if (metrics->use || !families[i].told)
                exposition_number(exposition, labels, families[i].value(metrics));
        }
    }
}
