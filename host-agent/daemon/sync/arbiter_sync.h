/* SPDX-License-Identifier: MIT */
/*
 * The arbiters of the shared GPUs (vgpu-arbiter(8)): starts and stops them, sends them the slices,
 * and reads their usage. Without vgpud they continue with their last settings.
 */
#ifndef VGPUD_SYNC_ARBITER_SYNC_H
#define VGPUD_SYNC_ARBITER_SYNC_H

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/slices/slices.h"

typedef struct ArbiterSync ArbiterSync;

/* All live longer. From here on host_counters() includes the arbiters' counters. */
ArbiterSync *arbiter_sync_new(Host *host, Offers *offers, const Slices *slices,
                              const Claims *claims);

void arbiter_sync_free(ArbiterSync *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ArbiterSync, arbiter_sync_free)

/* Begins: @bus has systemd. */
void arbiter_sync_start(ArbiterSync *link, GDBusConnection *bus);

/* GPUs, their settings, or slices have changed. */
void arbiter_sync_refresh(ArbiterSync *link);

/* Those that somebody has stopped, or that systemd has given up, are started again. */
void arbiter_sync_start_again(ArbiterSync *link);

/* One slice was added, changed or removed, or its container has changed. */
void arbiter_sync_update(ArbiterSync *link, const char *uuid);

/*
 * Which processes the arbiter of @gpu knows now: a table as of slice_members_new(), to be
 * unreferenced. Without an answer it is empty; an arbiter that hangs is not asked again until it
 * answers.
 */
GHashTable *arbiter_sync_members(ArbiterSync *link, const char *gpu);

#endif
