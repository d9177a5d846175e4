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

/*
 * SetPool without a caller: @source is one of the audit's. AGENT_ERROR_IN_USE: an owner of another
 * pool has a slice of the GPU.
 */
gboolean pools_give(const Pools *pools, const char *gpu, const char *pool, const char *source,
                    GError **error);

/*
 * Forgets the pools that were set for GPUs whose pool gpus.conf gives. @changes: a sentence for
 * each that differs. AGENT_ERROR_IN_USE: an owner of another pool has a slice of such a GPU; then,
 * without @dry_run, others may have been forgotten.
 */
gboolean pools_apply(const Pools *pools, gboolean dry_run, GStrvBuilder *changes, GError **error);

#endif
