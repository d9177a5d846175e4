/* SPDX-License-Identifier: MIT */
/*
 * The manager's methods for vGPUs and containers' slices: list, create, set, remove, check, claim.
 */
#ifndef VGPUD_METHODS_VGPUS_H
#define VGPUD_METHODS_VGPUS_H

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/slices/tenants.h"

typedef struct Vgpus Vgpus;

/* All of them live longer. */
Vgpus *vgpus_new(Host *host, Offers *offers, Slices *slices, const Tenants *tenants,
                 Claims *claims);

void vgpus_free(Vgpus *vgpus);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Vgpus, vgpus_free)

#endif
