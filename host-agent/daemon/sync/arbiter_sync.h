/* SPDX-License-Identifier: MIT */
/*
 * The arbiters of the shared GPUs (vgpu-arbiter(8)): started and stopped, told of slices, asked what these use. They
 * go on without vgpud, as they were told last.
 */
#ifndef VGPUD_SYNC_ARBITER_SYNC_H
#define VGPUD_SYNC_ARBITER_SYNC_H

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/slices/slices.h"

typedef struct ArbiterSync ArbiterSync;

/* All live longer. From here on host_counters() has what the arbiters count. */
ArbiterSync *arbiter_sync_new(Host *host, Offers *offers, const Slices *slices,
                              const Claims *claims);

void arbiter_sync_free(ArbiterSync *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ArbiterSync, arbiter_sync_free)

/* Begins: @bus is where systemd is. */
void arbiter_sync_start(ArbiterSync *link, GDBusConnection *bus);

/* GPUs, their settings, or slices have changed. */
void arbiter_sync_refresh(ArbiterSync *link);

/* One slice has changed, come or gone, or has got or lost its container. */
void arbiter_sync_update(ArbiterSync *link, const char *uuid);

#endif
