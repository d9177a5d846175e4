/* SPDX-License-Identifier: MIT */
/*
 * The health of the host's GPUs, from udev, the kernel's counters and sensors: as properties, as
 * events, and stored in the database.
 */
#ifndef METER_HEALTH_WATCH_H
#define METER_HEALTH_WATCH_H

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/model/gpu_health.h"
#include "lib/readings.h"

typedef struct Health Health;

/* @host, @slices: live longer. */
Health *health_new(Host *host, const Slices *slices);

void health_free(Health *health);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Health, health_free)

/* The driver reports that the vGPU has changed or was removed. */
void health_vgpu_changed(Health *health, const char *uuid);

/* Some of those reports may be missing: at the next look all vGPUs are read. */
void health_events_lost(Health *health);

/* What is found about the GPU; NULL: it was never seen. */
const GpuHealth *health_of_gpu(const Health *health, const char *gpu);

/* New work may be placed on the GPU. An unknown GPU is healthy. */
gboolean health_is_good(const Health *health, const char *gpu);

#endif
