/* SPDX-License-Identifier: MIT */
/*
 * Owners: jobs and the like of an engine that places work on several hosts, and what their slices
 * have used. That is kept for an hour after a slice, so a caller that was killed can ask again.
 */
#ifndef METER_OWNERS_H
#define METER_OWNERS_H

#include "host-agent/meter/host_view.h"
#include "host-agent/store/owner_table.h"

typedef struct Owners Owners;

/* @view: lives longer. */
Owners *owners_new(const HostView *view, GError **error);

void owners_free(Owners *owners);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Owners, owners_free)

/* A slice was added, changed or removed. */
void owners_update(Owners *owners, const char *uuid);

/* Right after counters_read(). Adds what has changed, and stores nothing. */
void owners_look(Owners *owners);

/* Reads the counters, and stores what has changed. Otherwise done once a minute. */
void owners_sample(Owners *owners);

/**
 * OwnerTotals
 * @slices: how many, with those that were removed
 * @present: how many there are
 * @energy_known: of all of them
 * @ended: when the last one was removed that was, seconds since 1970; 0: none was
 */
typedef struct {
    const char *owner;
    guint slices;
    guint present;
    OwnerCounts counts;
    guint64 peak_vram;
    gboolean energy_known;
    guint64 energy_uj;
    gint64 ended;
} OwnerTotals;

/* Zeros for an owner that is not known. */
OwnerTotals owners_totals(const Owners *owners, const char *owner);

/*
 * Of OwnerTotals: all owners that have slices, by name, then those that had some within the hour,
 * the last to end first. The names are valid until the next change.
 */
GPtrArray *owners_list(const Owners *owners);

#endif
