/* SPDX-License-Identifier: MIT */
/*
 * What containers' slices need on the host, by their doors: a directory that can be mounted, for
 * the arbiter's socket (slice_dirs.h); and where the door is guarded, vgpu-guard@UUID.service and
 * /run/vgpu/guard/UUID.conf, which says on which GPU it works.
 */
#ifndef VGPUD_DOOR_LINK_H
#define VGPUD_DOOR_LINK_H

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/slices/tenants.h"

typedef struct DoorLink DoorLink;

/* All of them live longer. */
DoorLink *door_link_new(Host *host, const Slices *slices, const Tenants *tenants,
                        const Claims *claims);

void door_link_free(DoorLink *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DoorLink, door_link_free)

/* From now on guards are started and stopped; what is left of slices that are gone is taken away.
 */
void door_link_start(DoorLink *link, GDBusConnection *bus);

/* A slice has come, changed or gone. Before its arbiter is told: the directory has to be there. */
void door_link_prepare(DoorLink *link, const char *uuid);

/* The same, after; and when its container has come or gone. */
void door_link_update(DoorLink *link, const char *uuid);

/* GPUs have changed their modes, or tenants their users. */
void door_link_refresh(DoorLink *link);

#endif
