/* SPDX-License-Identifier: MIT */
/*
 * What engines may take of the host, and the kernel may hold of their GPUs by itself: told to
 * systemd, which has their cgroups. It keeps what it was told beside the units, so that engines
 * which start anew, and without vgpud, have it, until the vGPU goes (vgpu-engine-user).
 */
#ifndef VGPUD_LIMITS_LINK_H
#define VGPUD_LIMITS_LINK_H

#include "host-agent/daemon/slices/slices.h"

typedef struct LimitsLink LimitsLink;

/* All live longer. */
LimitsLink *limits_link_new(Host *host, Offers *offers, const Slices *slices);

/* What was asked for and not yet answered is passed over. */
void limits_link_free(LimitsLink *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LimitsLink, limits_link_free)

/* Begins: @bus is where systemd is. */
void limits_link_start(LimitsLink *link, GDBusConnection *bus);

/* Types or slices have changed. */
void limits_link_refresh(LimitsLink *link);

/* One slice has changed, come or gone, or has a new engine. */
void limits_link_update(LimitsLink *link, const char *uuid);

#endif
