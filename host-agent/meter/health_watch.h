/* SPDX-License-Identifier: MIT */
/*
 * The health of the host's GPUs, from udev's events, the kernel's counters and sensors. vgpud is
 * told of each change.
 */
#ifndef METER_HEALTH_WATCH_H
#define METER_HEALTH_WATCH_H

#include "host-agent/meter/agent_link.h"
#include "host-agent/meter/host_view.h"
#include "host-agent/model/gpu_health.h"
#include "lib/readings.h"

typedef struct Health Health;

/* Both live longer. */
Health *health_new(const HostView *view, const AgentLink *agent);

void health_free(Health *health);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Health, health_free)

/* What vgpud has stored: findings_held() and findings_cleared(). */
void health_restore(Health *health, GVariant *held, GVariant *cleared);

/* vgpud may not know what it was told. */
void health_tell_again(Health *health);

/* GPUs, or their settings, may have changed. */
void health_gpus_changed(Health *health);

/*
 * The counts that an operator acknowledges by clearing the findings about @gpu now. FALSE with
 * @error: they would be found again, or there is no such GPU.
 */
gboolean health_acknowledge(Health *health, const char *gpu, guint64 *aer_fatal, guint64 *ecc,
                            GError **error);

/* An operator has cleared the findings. What still holds is told at once. */
void health_cleared(Health *health, const char *gpu, guint64 aer_fatal, guint64 ecc);

/* The driver reports that the vGPU has changed or was removed. */
void health_vgpu_changed(Health *health, const char *uuid);

/* Some of those reports may be missing: at the next look all vGPUs are read. */
void health_events_lost(Health *health);

/* What is found about the GPU; NULL: it was never seen. */
const GpuHealth *health_of_gpu(const Health *health, const char *gpu);

/* New work may be placed on the GPU. An unknown GPU is healthy. */
gboolean health_is_good(const Health *health, const char *gpu);

#endif
