/* SPDX-License-Identifier: MIT */
/*
 * The manager's methods for vGPUs and containers' slices: list, create, set, remove, check, claim.
 */
#ifndef VGPUD_METHODS_VGPUS_H
#define VGPUD_METHODS_VGPUS_H

#include "host-agent/daemon/lifecycle/lifecycle.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/slices/tenants.h"

typedef struct Vgpus Vgpus;

/* All of them live longer. */
Vgpus *vgpus_new(const Lifecycle *life, Offers *offers, const Tenants *tenants);

void vgpus_free(Vgpus *vgpus);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Vgpus, vgpus_free)

#endif
