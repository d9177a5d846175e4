/* SPDX-License-Identifier: MIT */
/*
 * What containers' slices need on the host, by their doors: a directory that can be mounted, for
 * the arbiter's socket (slice_dirs.h); and where the door is guarded, vgpu-guard@UUID.service and
 * /run/vgpu/guard/UUID.conf, which says on which GPU it works.
 */
#ifndef VGPUD_SYNC_TRANSPORT_SYNC_H
#define VGPUD_SYNC_TRANSPORT_SYNC_H

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/slices/tenants.h"

typedef struct TransportSync TransportSync;

/* All of them live longer. */
TransportSync *transport_sync_new(Host *host, const Slices *slices, const Tenants *tenants,
                        const Claims *claims);

void transport_sync_free(TransportSync *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TransportSync, transport_sync_free)

/* From now on guards are started and stopped; what is left of slices that are gone is taken away.
 */
void transport_sync_start(TransportSync *link, GDBusConnection *bus);

/* A slice has come, changed or gone. Before its arbiter is told: the directory has to be there. */
void transport_sync_prepare(TransportSync *link, const char *uuid);

/* The same, after; and when its container has come or gone. */
void transport_sync_update(TransportSync *link, const char *uuid);

/* GPUs have changed their modes, or tenants their users. */
void transport_sync_refresh(TransportSync *link);

#endif
