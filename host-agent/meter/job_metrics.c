/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/job_metrics.h"

#define NS_PER_SECOND 1e9
#define UJ_PER_JOULE  1e6

static double slices(const OwnerTotals *owner)
{
    return owner->present;
}

static double peak(const OwnerTotals *owner)
{
    return (double)owner->peak_vram;
}

static double gpu_seconds(const OwnerTotals *owner)
{
    return (double)owner->counts.gpu_ns / NS_PER_SECOND;
}

static double waited_seconds(const OwnerTotals *owner)
{
    return (double)owner->counts.waited_ns / NS_PER_SECOND;
}

static double throttled_seconds(const OwnerTotals *owner)
{
    return (double)owner->counts.throttled_ns / NS_PER_SECOND;
}

static const struct {
    const char *name;
    MetricType type;
    const char *help;
    double (*value)(const OwnerTotals *owner);
} families[] = {
    {"vgpu_job_slices", METRIC_GAUGE, "Slices that the job has; 0: they were released.", slices},
    {"vgpu_job_vram_peak_bytes", METRIC_GAUGE,
     "The most GPU memory that each of the job's slices has had at one time, summed.", peak},
    {"vgpu_job_gpu_seconds_total", METRIC_COUNTER,
     "GPU time of the job. What it did alone on a GPU is missing if the GPU's driver does not "
     "report "
     "it.",
     gpu_seconds},
    {"vgpu_job_waited_seconds_total", METRIC_COUNTER,
     "Time that the job's work waited for others'.", waited_seconds},
    {"vgpu_job_throttled_seconds_total", METRIC_COUNTER,
     "Time that the limits of the job's slices delayed it.", throttled_seconds},
};

static char *labels_of(const OwnerTotals *owner)
{
    GString *labels = g_string_new(NULL);

    exposition_label(labels, "owner", owner->owner);
    return g_string_free(labels, FALSE);
}

/* All that have slices come first. */
static guint count_shown(const GPtrArray *owners)
{
    guint present = 0;

    while (present < owners->len &&
           ((const OwnerTotals *)g_ptr_array_index(owners, present))->present)
        present++;
    return MIN(owners->len, present + JOB_METRICS_ENDED);
}

/* Those for which it is known: a 0 would look like a job that has used none. */
static void add_energy(Exposition *exposition, const GPtrArray *owners, guint shown)
{
    exposition_family(exposition, "vgpu_job_energy_joules_total", METRIC_COUNTER,
                      "Energy that the job has used, its part of the GPU's.");
    for (guint i = 0; i < shown; i++) {
        const OwnerTotals *owner = g_ptr_array_index(owners, i);
        g_autofree char *labels = labels_of(owner);

        if (owner->energy_known)
            exposition_number(exposition, labels, (double)owner->energy_uj / UJ_PER_JOULE);
    }
}

void add_job_metrics(Exposition *exposition, const GPtrArray *owners)
{
    guint shown = count_shown(owners);

    for (guint i = 0; i < G_N_ELEMENTS(families); i++) {
        exposition_family(exposition, families[i].name, families[i].type, families[i].help);
        for (guint k = 0; k < shown; k++) {
            const OwnerTotals *owner = g_ptr_array_index(owners, k);
            g_autofree char *labels = labels_of(owner);

            exposition_number(exposition, labels, families[i].value(owner));
        }
    }
    add_energy(exposition, owners, shown);
}
