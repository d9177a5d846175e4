/* SPDX-License-Identifier: MIT */
/* Which engine places work on which GPU: the property Pool and the method SetPool. */
#ifndef VGPUD_SLICES_POOLS_H
#define VGPUD_SLICES_POOLS_H

#include "host-agent/daemon/slices/slices.h"

typedef struct Pools Pools;

/* Both live longer. */
Pools *pools_new(Host *host, const Slices *slices);

void pools_free(Pools *pools);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Pools, pools_free)

/* gpus.conf was read again. */
void pools_refresh(const Pools *pools);

#endif
