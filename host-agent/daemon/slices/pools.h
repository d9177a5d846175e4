/* SPDX-License-Identifier: MIT */
/* Which engine places work on which GPU: the property Pool and the method SetPool. */
#ifndef VGPUD_SLICES_POOLS_H
#define VGPUD_SLICES_POOLS_H

#include "host-agent/daemon/modes/mode_switch.h"
#include "host-agent/daemon/slices/slices.h"

typedef struct Pools Pools;

/* Both live longer. */
Pools *pools_new(Host *host, const Slices *slices);

void pools_free(Pools *pools);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Pools, pools_free)

/* gpus.conf was read again. */
void pools_refresh(const Pools *pools);

/* For switches of GPUs that change their pool, too, which are the schedule's. */
SwitchPools pools_for_switches(Pools *pools);

/*
 * Forgets the pools that were set for GPUs whose pool gpus.conf gives. @changes: a sentence for
 * each that differs. AGENT_ERROR_IN_USE: an owner of another pool has a slice of such a GPU; then,
 * without @dry_run, others may have been forgotten.
 */
gboolean pools_apply(const Pools *pools, gboolean dry_run, GStrvBuilder *changes, GError **error);

#endif
