/* SPDX-License-Identifier: MIT */
/*
 * What engines may take of the host, and the kernel may hold of their GPUs by itself: told to
 * systemd, which has their cgroups. It keeps what it was told beside the units, so that engines
 * which start anew, and without vgpud, have it, until the vGPU goes (vgpu-engine-user).
 */
#ifndef VGPUD_SYNC_LIMITS_SYNC_H
#define VGPUD_SYNC_LIMITS_SYNC_H

#include "host-agent/daemon/slices/slices.h"

typedef struct LimitsSync LimitsSync;

/* All live longer. */
LimitsSync *limits_sync_new(Host *host, Offers *offers, const Slices *slices);

/* What was asked for and not yet answered is passed over. */
void limits_sync_free(LimitsSync *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LimitsSync, limits_sync_free)

/* Begins: @bus is where systemd is. */
void limits_sync_start(LimitsSync *link, GDBusConnection *bus);

/* Types or slices have changed. */
void limits_sync_refresh(LimitsSync *link);

/* One slice has changed, come or gone, or has a new engine. */
void limits_sync_update(LimitsSync *link, const char *uuid);

#endif
