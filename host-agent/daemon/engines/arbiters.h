/* SPDX-License-Identifier: MIT */
/*
 * The main loop's questions to the arbiters of all GPUs. One that is silent is waited for once;
 * then a thread asks it, and until it answers it counts as silent without a wait.
 */
#ifndef VGPUD_ENGINES_ARBITERS_H
#define VGPUD_ENGINES_ARBITERS_H

#include "host-agent/daemon/engines/arbiter.h"

typedef struct Arbiters Arbiters;

Arbiters *arbiters_new(HostRoot *root);

void arbiters_free(Arbiters *arbiters);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Arbiters, arbiters_free)

/* It has not answered, and is not waited for. */
gboolean arbiters_is_silent(const Arbiters *arbiters, const char *gpu);

/* As arbiter_read_status() and arbiter_read_members(). */
ArbiterAnswer arbiters_read_status(Arbiters *arbiters, const char *gpu, SliceUseFunc func,
                                   void *data);
ArbiterAnswer arbiters_read_members(Arbiters *arbiters, const char *gpu, GHashTable *members);

/*
 * How long one that has answered before may be away, as while it is restarted. After that its GPU
 * counts as one that has none. Only tests change it.
 */
#define ARBITERS_AWAY_US (5 * G_USEC_PER_SEC)
extern _Atomic gint64 arbiters_away_us;

/*
 * A table as of slice_members_new(); NULL: the arbiter is silent, or is being restarted or was just
 * now, so it is not known.
 */
GHashTable *arbiters_members(Arbiters *arbiters, const char *gpu);

#endif
