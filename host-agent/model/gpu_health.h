/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with a GPU: rules that make findings of readings. It reads nothing and knows no
 * clock, so that tests can have any.
 */
#ifndef MODEL_GPU_HEALTH_H
#define MODEL_GPU_HEALTH_H

#include <glib.h>

#include "lib/readings.h"
#include "lib/vgpu.h"

typedef enum {
    HEALTH_GONE,           /* it was there, somebody has a part of it, and it is away */
    HEALTH_AER_FATAL,      /* held: a fatal error on its link */
    HEALTH_AER_NONFATAL,   /* an error on its link that was not corrected */
    HEALTH_AER_CORRECTED,  /* many errors on its link that were corrected */
    HEALTH_LINK,           /* fewer lanes than it could have */
    HEALTH_TEMPERATURE,    /* too hot */
    HEALTH_ECC,            /* held: an error in its memory that could not be corrected */
    HEALTH_ENGINE_CRASHES, /* held: a vGPU's engine dies again and again, and none lives */
    HEALTH_ENGINE_FAILED,  /* a vGPU's engine gave up, and none lives */
    HEALTH_KINDS,
} HealthKind;

/* "aer-fatal" */
const char *health_kind_name(HealthKind kind);

/* FALSE where @name is none of these. */
gboolean health_kind_parse(const char *name, HealthKind *kind);

/* Findings of this kind stay until an operator clears them. */
gboolean health_kind_is_held(HealthKind kind);

typedef struct GpuHealth GpuHealth;

GpuHealth *gpu_health_new(void);

void gpu_health_free(GpuHealth *health);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GpuHealth, gpu_health_free)

/* The sentence; NULL: there is no such finding. */
const char *gpu_health_reason(const GpuHealth *health, HealthKind kind);

gboolean gpu_health_is_good(const GpuHealth *health);

/* A finding that was kept over a restart of vgpud. */
void gpu_health_restore(GpuHealth *health, HealthKind kind, const char *reason);

/* Errors up to these counts are known to an operator, who has cleared them. */
void gpu_health_set_cleared(GpuHealth *health, guint64 aer_fatal, guint64 ecc_uncorrectable);

/* The GPU is there, and this is how it is. @now_us: any clock that only goes forward. */
void gpu_health_observe(GpuHealth *health, const GpuReadings *readings, gint64 now_us);

/* A vGPU of its is so now. Nothing is found before gpu_health_judge_engines(). */
void gpu_health_observe_engine(GpuHealth *health, const Vgpu *vgpu, gint64 now_us);

/* The vGPU is no more. */
void gpu_health_forget_engine(GpuHealth *health, const char *uuid);

/*
 * Makes findings of what was observed. While one vGPU of the GPU serves its guest and has not lost
 * an engine lately, what happens to others' engines is their guests' doing, and no finding: or a
 * guest that crashes its engine could close the GPU to all.
 */
void gpu_health_judge_engines(GpuHealth *health);

/* A sentence, whether or not it is a finding; NULL: its engine does not die again and again. */
char *gpu_health_engine_loops(const GpuHealth *health, const char *uuid);

/* It is away. @users: how many vGPUs were promised of it; 0: nobody misses it. */
void gpu_health_observe_gone(GpuHealth *health, guint users);

/* An operator says that it is good: all is forgotten. What still is so is found again. */
void gpu_health_clear(GpuHealth *health);

/*
 * How fast something happens: a bucket that fills by one for each time, and leaks.
 */
/**
 * Bucket - zeroed: empty
 * @level: what is in it
 * @at: when that was so, microseconds
 * @seen: the counter that was added last
 * @known: there was one
 */
typedef struct {
    double level;
    gint64 at;
    guint64 seen;
    gboolean known;
} Bucket;

/*
 * Adds what @counter has grown by since the last call, after it has leaked one in each @leak_us
 * since. The first call adds nothing: it is not known when that was. A counter that has fallen has
 * begun anew.
 */
void bucket_fill(Bucket *bucket, guint64 counter, gint64 now_us, gint64 leak_us);

#endif
