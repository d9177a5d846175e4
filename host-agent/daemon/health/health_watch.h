/* SPDX-License-Identifier: MIT */
/*
 * The health of the host's GPUs: what udev, the kernel's counters and sensors say, as properties,
 * as events, and kept in the database.
 */
#ifndef VGPUD_HEALTH_HEALTH_WATCH_H
#define VGPUD_HEALTH_HEALTH_WATCH_H

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/slices/slices.h"
#include "lib/readings.h"

typedef struct Health Health;

/* @host, @slices: live longer. */
Health *health_new(Host *host, const Slices *slices);

void health_free(Health *health);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Health, health_free)

/* The driver says that something of the vGPU has changed, or that it is no more. */
void health_vgpu_changed(Health *health, const char *uuid);

/* New work may be put on the GPU. One that is not known is good. */
gboolean health_is_good(const Health *health, const char *gpu);

#endif
