/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with a GPU: rules that turn readings into findings. It reads nothing and has no
 * clock, so that tests can supply both.
 */
#ifndef MODEL_GPU_HEALTH_H
#define MODEL_GPU_HEALTH_H

#include <glib.h>

#include "lib/readings.h"
#include "lib/vgpu.h"

typedef enum {
    HEALTH_GONE,           /* it was present, slices were promised of it, and it is missing */
    HEALTH_AER_FATAL,      /* held: a fatal error on its link */
    HEALTH_AER_NONFATAL,   /* an uncorrected error on its link */
    HEALTH_AER_CORRECTED,  /* many corrected errors on its link */
    HEALTH_LINK,           /* fewer lanes than possible */
    HEALTH_TEMPERATURE,    /* too hot */
    HEALTH_ECC,            /* held: an uncorrectable error in its memory */
    HEALTH_ENGINE_CRASHES, /* held: a vGPU's engine dies repeatedly, and none lives */
    HEALTH_ENGINE_FAILED,  /* a vGPU's engine gave up, and none lives */
    HEALTH_KINDS,
} HealthKind;

/* "aer-fatal" */
const char *health_kind_name(HealthKind kind);

/* FALSE if @name is none of these. */
gboolean health_kind_parse(const char *name, HealthKind *kind);

/* Findings of this kind stay until an operator clears them. */
gboolean health_kind_is_held(HealthKind kind);

typedef struct GpuHealth GpuHealth;

GpuHealth *gpu_health_new(void);

void gpu_health_free(GpuHealth *health);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GpuHealth, gpu_health_free)

/* The sentence; NULL: no such finding. */
const char *gpu_health_reason(const GpuHealth *health, HealthKind kind);

gboolean gpu_health_is_good(const GpuHealth *health);

/* A finding that was stored before a restart of vgpud. */
void gpu_health_restore(GpuHealth *health, HealthKind kind, const char *reason);

/* An operator has acknowledged errors up to these counts, by clearing them. */
void gpu_health_set_cleared(GpuHealth *health, guint64 aer_fatal, guint64 ecc_uncorrectable);

/*
 * The counts that an operator acknowledges by clearing now: the last that were read, since a
 * counter may be unreadable for a while. FALSE: errors in its memory are found, and their counter
 * has not been read since vgpud started, so the finding would come back with the next reading.
 */
gboolean gpu_health_acknowledge(const GpuHealth *health, guint64 *aer_fatal,
                                guint64 *ecc_uncorrectable);

/* The GPU is present, with these readings. @now_us: any monotonic clock. */
void gpu_health_observe(GpuHealth *health, const GpuReadings *readings, gint64 now_us);

/* A vGPU of the GPU has this state now. Findings are made by gpu_health_judge_engines() only. */
void gpu_health_observe_engine(GpuHealth *health, const Vgpu *vgpu, gint64 now_us);

/* The vGPU was removed. */
void gpu_health_forget_engine(GpuHealth *health, const char *uuid);

/*
 * Makes findings from the observations. While one vGPU of the GPU serves its guest and has not lost
 * an engine recently, guests cause the deaths of others' engines, and there is no finding.
 * Otherwise a guest that crashes its engine could close the GPU to all. Engines that were not
 * observed again are as they were, but their losses are older.
 */
void gpu_health_judge_engines(GpuHealth *health, gint64 now_us);

/* An engine of the GPU dies repeatedly, or has given up, whether or not that is a finding. */
gboolean gpu_health_has_suspect(const GpuHealth *health);

/* A sentence, whether or not it is a finding; NULL: its engine does not die repeatedly. */
char *gpu_health_engine_loops(const GpuHealth *health, const char *uuid);

/* It is missing. @users: number of vGPUs promised of it; 0: that is no finding. */
void gpu_health_observe_gone(GpuHealth *health, guint users);

/*
 * An operator declares it healthy: all findings are dropped. Those that still hold are found again.
 */
void gpu_health_clear(GpuHealth *health);

/*
 * The steps if a GPU has less free memory than its water mark: best-effort tenants are told, then
 * the operator's command runs, then their vGPUs are stopped. It has no clock and no side effects.
 */

typedef enum {
    PRESSURE_NOTHING, /* no step now */
    PRESSURE_TELL,
    PRESSURE_COMMAND,
    PRESSURE_EVICT, /* stop the best-effort vGPUs */
    PRESSURE_OVER,  /* tell that enough is free again */
} PressureStep;

/**
 * Pressure - of one GPU; zeroed: enough is free
 * @last: the last step; PRESSURE_NOTHING: enough is free
 * @since: the time of that step, microseconds
 */
typedef struct {
    PressureStep last;
    gint64 since;
} Pressure;

/*
 * The next step if @free bytes are free and @mark are desired. @victims: number of best-effort
 * vGPUs that can be stopped. @grace_us is the time between steps. If PRESSURE_EVICT was not enough,
 * it restarts with PRESSURE_TELL as soon as there is a vGPU to stop.
 */
PressureStep pressure_step(Pressure *pressure, guint64 free, guint64 mark, guint victims,
                           gint64 now_us, gint64 grace_us);

/* Steps are being taken, or have been taken and were not enough. */
gboolean pressure_is_on(const Pressure *pressure);

#endif
