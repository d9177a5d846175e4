/* SPDX-License-Identifier: MIT */
/*
 * Limits of engines' host resources, and of their GPUs if the kernel enforces them: sent to
 * systemd, which manages their cgroups. systemd stores them with the units, so restarted engines
 * have them, even without vgpud, until the vGPU is removed (vgpu-engine-user).
 */
#ifndef VGPUD_SYNC_LIMITS_SYNC_H
#define VGPUD_SYNC_LIMITS_SYNC_H

#include "host-agent/daemon/slices/slices.h"

typedef struct LimitsSync LimitsSync;

/* All live longer. */
LimitsSync *limits_sync_new(Host *host, Offers *offers, const Slices *slices);

/* Pending calls are dropped. */
void limits_sync_free(LimitsSync *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LimitsSync, limits_sync_free)

/* Begins: @bus has systemd. */
void limits_sync_start(LimitsSync *link, GDBusConnection *bus);

/* Types or slices have changed. */
void limits_sync_refresh(LimitsSync *link);

/* One slice was added, changed or removed, or has a new engine. */
void limits_sync_update(LimitsSync *link, const char *uuid);

#endif
