/* SPDX-License-Identifier: MIT */
/*
 * Use of the GPU by the processes of a slice that no member of its arbiter reports, from the GPU's
 * driver: all use by processes that go round the door, and memory that members have beyond what
 * they requested, such as a driver's own. The arbiter reads it in a file, and charges the slice.
 *
 * Memory that members have beyond is charged if two looks in a row have seen it, and if it is more
 * than a driver's rounding. It is not known of drivers that do not say how much of it is shared.
 */
#ifndef METER_UNGOVERNED_H
#define METER_UNGOVERNED_H

#include "host-agent/daemon/engines/arbiter.h"
#include "host-agent/model/slice.h"
#include "lib/host_root.h"

typedef struct Ungoverned Ungoverned;

/* Arbiters are told that there is no such use: an earlier vgpud's counters are not known. */
Ungoverned *ungoverned_new(HostRoot *root);

void ungoverned_free(Ungoverned *ungoverned);

/**
 * UngovernedLook - at one slice
 * @members: as its arbiter says
 * @clients: of the members, as of drm_process_add()
 * @others: processes that go round the door, of guint
 * @nvidia, @nvidia_at: as of nvidia_processes(); NULL: the GPU's driver has no such readings
 */
typedef struct {
    const SliceMembers *members;
    GHashTable *clients;
    const GArray *others;
    GHashTable *nvidia;
    gint64 nvidia_at;
} UngovernedLook;

void ungoverned_look(Ungoverned *ungoverned, const Slice *slice, const UngovernedLook *look);

/* The arbiter does not answer: what was known stays. */
void ungoverned_keep(Ungoverned *ungoverned, const Slice *slice);

/* The round is over: slices that were not looked at have no such use. */
void ungoverned_end_round(Ungoverned *ungoverned);

#endif
