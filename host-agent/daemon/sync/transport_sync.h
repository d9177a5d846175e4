/* SPDX-License-Identifier: MIT */
/*
 * Host resources for containers' slices, by their transports: a directory that can be mounted, for
 * the arbiter's socket (transport.h); and for transport guarded, vgpu-guard@UUID.service and
 * /run/vgpu/guard/UUID.conf, which names its GPU.
 */
#ifndef VGPUD_SYNC_TRANSPORT_SYNC_H
#define VGPUD_SYNC_TRANSPORT_SYNC_H

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/containers/transport.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/slices/tenants.h"
#include "host-agent/daemon/sync/outputs.h"

typedef struct TransportSync TransportSync;

/* All of them live longer. */
TransportSync *transport_sync_new(Host *host, Outputs *outputs, const Slices *slices,
                                  const Tenants *tenants, const Claims *claims);

void transport_sync_free(TransportSync *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TransportSync, transport_sync_free)

/* From now on guards are started and stopped; remains of removed slices are deleted. */
void transport_sync_start(TransportSync *link, GDBusConnection *bus, GuardStarts starts,
                          void *data);

/* What each slice has; their data is the TransportSync. */
extern const OutputKind slice_dirs_kind, cuda_links_kind, guard_kind;

/* GPUs have changed their modes, or tenants their users. */
void transport_sync_refresh(TransportSync *link);

#endif
