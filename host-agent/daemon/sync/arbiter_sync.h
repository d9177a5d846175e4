/* SPDX-License-Identifier: MIT */
/*
 * The arbiters of the shared GPUs (vgpu-arbiter(8)): starts and stops them, and sends them the
 * slices. Without vgpud they continue with their last settings.
 */
#ifndef VGPUD_SYNC_ARBITER_SYNC_H
#define VGPUD_SYNC_ARBITER_SYNC_H

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/sync/outputs.h"

typedef struct ArbiterSync ArbiterSync;

/* All live longer. */
ArbiterSync *arbiter_sync_new(Host *host, Outputs *outputs, Offers *offers, const Slices *slices,
                              const Claims *claims);

void arbiter_sync_free(ArbiterSync *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ArbiterSync, arbiter_sync_free)

/* Begins: @bus has systemd. */
void arbiter_sync_start(ArbiterSync *link, GDBusConnection *bus);

/* GPUs, their settings, or slices have changed. */
void arbiter_sync_refresh(ArbiterSync *link);

/* Those that somebody has stopped, or that systemd has given up, are started again. */
void arbiter_sync_start_again(ArbiterSync *link);

/* The file of each slice; its data is the ArbiterSync. */
extern const OutputKind share_kind;

#endif
