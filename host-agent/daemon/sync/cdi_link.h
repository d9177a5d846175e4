/* SPDX-License-Identifier: MIT */
/*
 * /run/cdi/mdev-vgpu.json, kept as the slices are; and the manager's method GetCdi.
 */
#ifndef VGPUD_CDI_LINK_H
#define VGPUD_CDI_LINK_H

#include "host-agent/daemon/slices/slices.h"

typedef struct CdiLink CdiLink;

/* Both live longer. Nothing is written before cdi_link_start(). */
CdiLink *cdi_link_new(Host *host, const Slices *slices);

void cdi_link_free(CdiLink *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CdiLink, cdi_link_free)

void cdi_link_start(CdiLink *link);

/* GPUs have changed. The file is as they are when this returns. */
void cdi_link_refresh(CdiLink *link);

/* The same for a slice that has come, changed or gone. */
void cdi_link_update(CdiLink *link, const char *uuid);

#endif
