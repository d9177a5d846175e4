/* SPDX-License-Identifier: MIT */
/*
 * What the arbiters report on their slices: a source of counters. An arbiter that is at rest since
 * its last report is not asked again, and one that hangs not until it answers.
 */
#ifndef METER_ARBITER_REPORTS_H
#define METER_ARBITER_REPORTS_H

#include "host-agent/meter/counters.h"

typedef struct ArbiterReports ArbiterReports;

/* @counters: lives longer. From here on it includes the arbiters' counters. */
ArbiterReports *arbiter_reports_new(HostRoot *root, Counters *counters);

void arbiter_reports_free(ArbiterReports *reports);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ArbiterReports, arbiter_reports_free)

/* The GPU has an arbiter from now on; none any more. */
void arbiter_reports_add(ArbiterReports *reports, const char *gpu);
void arbiter_reports_remove(ArbiterReports *reports, const char *gpu);

/**
 * ReportedSlice - what an arbiter reports on a slice besides its use
 * @pids: the slice's processes, of guint
 * @measured: GPU time of all slices of the GPU, ns
 * @now: of CLOCK_MONOTONIC, us
 */
typedef struct {
    const char *gpu;
    const char *uuid;
    const GArray *pids;
    guint64 measured;
    gint64 now;
} ReportedSlice;

/* Adds to @use what the arbiter does not measure: alone_ns and alone_known. */
typedef void (*CompleteUseFunc)(const ReportedSlice *slice, SliceUse *use, void *data);

/* Replaces an earlier @func; NULL: none. */
void arbiter_reports_complete(ArbiterReports *reports, CompleteUseFunc func, void *data);

/*
 * Which processes the arbiter of @gpu knows now: a table as of slice_members_new(), to be
 * unreferenced. Without an answer it is empty.
 */
GHashTable *arbiter_reports_members(ArbiterReports *reports, const char *gpu);

/* It has not answered, so nothing is reported on its slices until it does. */
gboolean arbiter_reports_is_silent(const ArbiterReports *reports, const char *gpu);

#endif
