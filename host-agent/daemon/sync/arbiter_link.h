/* SPDX-License-Identifier: MIT */
/*
 * The arbiters of the shared GPUs (vgpu-arbiter(8)): started and stopped, told of slices, asked what these use. They
 * go on without vgpud, as they were told last.
 */
#ifndef VGPUD_ARBITER_LINK_H
#define VGPUD_ARBITER_LINK_H

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/slices/slices.h"

typedef struct ArbiterLink ArbiterLink;

/* All live longer. From here on host_counters() has what the arbiters count. */
ArbiterLink *arbiter_link_new(Host *host, Offers *offers, const Slices *slices,
                              const Claims *claims);

void arbiter_link_free(ArbiterLink *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ArbiterLink, arbiter_link_free)

/* Begins: @bus is where systemd is. */
void arbiter_link_start(ArbiterLink *link, GDBusConnection *bus);

/* GPUs, their settings, or slices have changed. */
void arbiter_link_refresh(ArbiterLink *link);

/* One slice has changed, come or gone, or has got or lost its container. */
void arbiter_link_update(ArbiterLink *link, const char *uuid);

#endif
