/* SPDX-License-Identifier: MIT */
/* /run/cdi/mdev-vgpu.json, kept in step with the slices; and the manager's method GetCdi. */
#ifndef VGPUD_SYNC_CDI_SYNC_H
#define VGPUD_SYNC_CDI_SYNC_H

#include "host-agent/daemon/slices/slices.h"

typedef struct CdiSync CdiSync;

/* Both live longer. Nothing is written before cdi_sync_start(). */
CdiSync *cdi_sync_new(Host *host, const Slices *slices);

void cdi_sync_free(CdiSync *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CdiSync, cdi_sync_free)

void cdi_sync_start(CdiSync *link);

/* GPUs have changed. The file is up to date when this returns. */
void cdi_sync_refresh(CdiSync *link);

/* The same for a slice that was added, changed or removed. */
void cdi_sync_update(CdiSync *link, const char *uuid);

#endif
