/* SPDX-License-Identifier: MIT */
/* CDI: the file that tells containers' runtimes which slices there are. */
#ifndef VGPUD_SYNC_CDI_H
#define VGPUD_SYNC_CDI_H

#include "lib/host_root.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/slices/tenants.h"
#include "host-agent/daemon/sync/outputs.h"

/*
 * Containers' devices in CDI (Container Device Interface), for podman, docker, containerd and
 * cri-o: what a runtime adds to a container for each, in JSON.
 */

/*
 * /run/cdi/mdev-vgpu.json, and mdev-vgpu-owner-OWNER.json for the slices of each owner, kept in
 * step with the slices; and the manager's methods GetCdi and GetDoor.
 */

typedef struct CdiSync CdiSync;

/* All of them live longer. Nothing is written before cdi_sync_start(). */
CdiSync *cdi_sync_new(Host *host, Outputs *outputs, const Slices *slices, const Tenants *tenants);

void cdi_sync_free(CdiSync *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CdiSync, cdi_sync_free)

void cdi_sync_start(CdiSync *link);

/* GPUs have changed. The file is up to date when this returns. */
void cdi_sync_refresh(CdiSync *link);

/* Which file each slice is in; its data is the CdiSync. */
extern const OutputKind cdi_kind;

#endif
