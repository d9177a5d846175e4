/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/job_metrics.h"

#define NS_PER_SECOND 1e9
#define UJ_PER_JOULE  1e6

#define TOTAL(field) .part = 0, .value = NUMBER(OwnerTotals, field)

static const Metric job_metrics[] = {
    {"vgpu_job_slices", METRIC_GAUGE, "Slices that the job has; 0: they were released.",
     TOTAL(present)},
    {"vgpu_job_vram_peak_bytes", METRIC_GAUGE,
     "The most GPU memory that each of the job's slices has had at one time, summed.",
     TOTAL(peak_vram)},
    {"vgpu_job_gpu_seconds_total", METRIC_COUNTER,
     "GPU time of the job. What it did alone on a GPU is missing if the GPU's driver does not "
     "report it.",
     TOTAL(counts.gpu_ns), .unit = NS_PER_SECOND},
    {"vgpu_job_waited_seconds_total", METRIC_COUNTER,
     "Time that the job's work waited for others'.", TOTAL(counts.waited_ns),
     .unit = NS_PER_SECOND},
    {"vgpu_job_throttled_seconds_total", METRIC_COUNTER,
     "Time that the limits of the job's slices delayed it.", TOTAL(counts.throttled_ns),
     .unit = NS_PER_SECOND},
    {"vgpu_job_energy_joules_total", METRIC_COUNTER,
     "Energy that the job has used, its part of the GPU's.", TOTAL(energy_uj),
     .known = NUMBER(OwnerTotals, energy_known), .unit = UJ_PER_JOULE},
};

/* All that have slices come first. */
static guint count_shown(const GPtrArray *owners)
{
    guint present = 0;

    while (present < owners->len &&
           ((const OwnerTotals *)g_ptr_array_index(owners, present))->present)
        present++;
    return MIN(owners->len, present + JOB_METRICS_ENDED);
}

void add_job_metrics(Exposition *exposition, const GPtrArray *owners)
{
    g_autoptr(GArray) rows = metric_rows_new();
    guint shown = count_shown(owners);

    for (guint i = 0; i < shown; i++) {
        const OwnerTotals *owner = g_ptr_array_index(owners, i);
        MetricRow row = {.labels = exposition_labels("owner", owner->owner, NULL),
                         .parts = {owner}};

        g_array_append_val(rows, row);
    }
    exposition_add(exposition, job_metrics, G_N_ELEMENTS(job_metrics), rows);
}
