/* SPDX-License-Identifier: MIT */
/*
 * What owners' slices have used, for those who do not count it: vgpud's methods. Owners are jobs
 * and the like of an engine that places work on several hosts.
 */
#ifndef VGPUD_SLICES_OWNER_USES_H
#define VGPUD_SLICES_OWNER_USES_H

#include "host-agent/store/owner_table.h"

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

/**
 * OwnerUses - who counts
 * @begin: slices are about to be made for @owner. If it has none, it is another job of that name:
 * what the earlier one has used is forgotten
 * @sample: reads the counters now
 * @totals: until the last sample; zeros for an owner that is not known
 */
typedef struct {
    void *data;
    void (*begin)(void *data, const char *owner);
    void (*sample)(void *data);
    OwnerTotals (*totals)(const void *data, const char *owner);
} OwnerUses;

#endif
