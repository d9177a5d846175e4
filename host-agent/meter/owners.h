/* SPDX-License-Identifier: MIT */
/*
 * Owners: jobs and the like of an engine that places work on several hosts, and what their slices
 * have used. That is kept for an hour after a slice, so a caller that was killed can ask again.
 */
#ifndef METER_OWNERS_H
#define METER_OWNERS_H

#include "host-agent/daemon/slices/owner_uses.h"
#include "host-agent/daemon/slices/slices.h"

typedef struct Owners Owners;

/* All of them live longer. */
Owners *owners_new(Host *host, const Slices *slices, GError **error);

void owners_free(Owners *owners);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Owners, owners_free)

/* A slice was added, changed or removed. */
void owners_update(Owners *owners, const char *uuid);

/* @vgpus: as counters_read() has just returned it. Adds what has changed, and stores nothing. */
void owners_look(Owners *owners, const GPtrArray *vgpus);

/* Reads the counters, and stores what has changed. Otherwise done once a minute. */
void owners_sample(Owners *owners);

/* For those who do not count. Valid as long as @owners. */
OwnerUses owners_uses(Owners *owners);

/*
 * Of OwnerTotals: all owners that have slices, by name, then those that had some within the hour,
 * the last to end first. The names are valid until the next change.
 */
GPtrArray *owners_list(const Owners *owners);

#endif
