/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with a GPU: rules that turn readings into findings. It reads nothing and has no
 * clock, so that tests can supply both.
 */
#ifndef MODEL_GPU_HEALTH_H
#define MODEL_GPU_HEALTH_H

#include <glib.h>

#include "lib/gpus.h"
#include "lib/readings.h"
#include "lib/vgpu.h"

/* What follows from a finding. */
typedef enum {
    HEALTH_NOTICE,  /* reported; closes nothing */
    HEALTH_ENGINES, /* engines die, and nothing else is wrong: nothing new is placed */
    HEALTH_PASSING, /* may pass by itself: nothing new is placed */
    HEALTH_BROKEN,  /* the GPU itself: nothing new is placed, and its users should leave */
} HealthGrade;

/* "broken" */
const char *health_grade_name(HealthGrade grade);

/* FALSE if @name is none. */
gboolean health_grade_parse(const char *name, HealthGrade *grade);

/* What follows from a finding of that kind, unless gpus.conf says that it is ignored. */
HealthGrade health_kind_grade(HealthKind kind);

/* Findings of this kind stay until an operator clears them. */
gboolean health_kind_is_held(HealthKind kind);

typedef struct GpuHealth GpuHealth;

GpuHealth *gpu_health_new(void);

void gpu_health_free(GpuHealth *health);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GpuHealth, gpu_health_free)

/* The sentence; NULL: no such finding. */
const char *gpu_health_reason(const GpuHealth *health, HealthKind kind);

/* Bits 1 << HealthKind: findings of these kinds are notices from now on. */
void gpu_health_ignore(GpuHealth *health, guint kinds);

/* What follows from a finding of this kind. */
HealthGrade gpu_health_grade_of(const GpuHealth *health, HealthKind kind);

/* The worst of all findings; HEALTH_NOTICE: none, or notices only. */
HealthGrade gpu_health_grade(const GpuHealth *health);

/* Nothing is found that closes it. */
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

/*
 * A vGPU of the GPU has this state now. Findings are made by gpu_health_judge_engines() only.
 * @tenant: whose it is; NULL or "": nobody's, and then each vGPU counts as a tenant's of its own.
 */
void gpu_health_observe_engine(GpuHealth *health, const Vgpu *vgpu, const char *tenant,
                               gint64 now_us);

/*
 * A container's or a program's slice has done so much work (GPU time, submissions) in all. If that
 * grows the GPU works, so it is a witness like a vGPU that serves its guest.
 */
void gpu_health_observe_work(GpuHealth *health, const char *uuid, guint64 work, gint64 now_us);

/* The vGPU was removed. */
void gpu_health_forget_engine(GpuHealth *health, const char *uuid);

/*
 * Makes findings from the observations. The GPU is the cause only if engines of two tenants are in
 * trouble at once, and nobody on it is a witness: no vGPU serves its guest without having lost an
 * engine recently, and no container's slice has computed in the last minutes. Otherwise a guest
 * that ends its own engine could close the GPU to all. Engines that were not observed again are as
 * they were, but their losses are older.
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
    PRESSURE_SUSPEND, /* the programs of native slices */
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
 * vGPUs that can be stopped; @suspends: some can be suspended. @grace_us is the time between steps.
 * If PRESSURE_EVICT was not enough, it restarts with PRESSURE_TELL as soon as there is a vGPU to
 * stop.
 */
PressureStep pressure_step(Pressure *pressure, guint64 free, guint64 mark, guint victims,
                           gboolean suspends, gint64 now_us, gint64 grace_us);

/* Steps are being taken, or have been taken and were not enough. */
gboolean pressure_is_on(const Pressure *pressure);

#endif
