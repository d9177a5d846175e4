/* SPDX-License-Identifier: MIT */
/*
 * The counters of a host's slices: of the vGPUs that vgpu_states.h has, what driver and engine
 * count, and of all what the arbiters report.
 */
#ifndef METER_COUNTERS_H
#define METER_COUNTERS_H

#include "host-agent/daemon/engines/arbiter.h"
#include "host-agent/daemon/engines/vgpu_states.h"
#include "lib/drm_clients.h"

/**
 * VgpuCounters - of one vGPU, since it was made
 * @vgpu: the driver's attributes and counters; lives as long as the vGPU is listed
 * @drm: GPU time and memory of its engine, if the GPU's driver reports them
 * @slice: its GPU's arbiter's report; valid if @slice_known
 */
typedef struct {
    const Vgpu *vgpu;
    guint64 window_faults;
    guint64 window_published;
    guint64 pinned;
    DrmUse drm;
    SliceUse slice;
    gboolean slice_known;
} VgpuCounters;

typedef struct Counters Counters;

Counters *counters_new(HostRoot *root);

void counters_free(Counters *counters);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Counters, counters_free)

/**
 * CountersSource - counters of others
 * @read: called with each reading of all, to add them (counters_put_use())
 * @rests: whether all of them are what @read has put last
 * @watch: between a call with TRUE and one with FALSE, counters_end_rest() is called whenever
 * @rests may have become FALSE
 */
typedef struct {
    void (*read)(Counters *counters, void *data);
    gboolean (*rests)(void *data);
    void (*watch)(gboolean watch, void *data);
} CountersSource;

/* @source: lives longer; NULL: none. */
void counters_set_source(Counters *counters, const CountersSource *source, void *data);

/* An arbiter's counters of a vGPU that was read before, or of a slice that is no vGPU. */
void counters_put_use(Counters *counters, const char *uuid, const SliceUse *use);

/* The last report on a slice that is no vGPU; NULL: none. Valid until the next counters_read(). */
const SliceUse *counters_use(const Counters *counters, const char *uuid);

/* GPU memory in use by it, from the GPU's driver or else from the arbiter; FALSE: unknown. */
gboolean counters_vram(const VgpuCounters *counters, guint64 *bytes);

/*
 * All its GPU time, from the GPU's driver or else from the arbiter; FALSE: it is not known, as
 * slice_use_gpu_ns() says.
 */
gboolean counters_gpu_ns(const VgpuCounters *counters, guint64 *ns);

/* Sets the counters of which that is the sum; each may restart by itself. What is not known stays.
 */
void counters_gpu_times(const VgpuCounters *counters, guint64 *gpu_ns, guint64 *alone_ns);

/*
 * Of VgpuCounters, in the order of their UUIDs. Owned by @counters, valid until the next call.
 * Reads the values that have changed.
 */
const GPtrArray *counters_read(Counters *counters);

/*
 * The same, but the arbiters are not asked, and their last report stays. It suffices if only the
 * vGPUs and their states are needed: many arbiters take much longer to answer than the kernel.
 */
const GPtrArray *counters_look(Counters *counters);

/* A number that changes whenever something that can have changed is read. */
guint64 counters_serial(const Counters *counters);

/* For a source: it has read something that can have changed. */
void counters_note_change(Counters *counters);

/*
 * TRUE: nothing can have changed since @serial, which counters_serial() was after a reading of all.
 * Needs counters_set_watched(). It costs nothing for vGPUs, and little for arbiters.
 */
gboolean counters_rest(const Counters *counters, guint64 serial);

/*
 * Calls @func once, when counters_rest() may have become FALSE for a serial for which it is TRUE
 * now. It replaces an earlier @func; NULL: no longer.
 */
void counters_await_change(Counters *counters, void (*func)(void *data), void *data);

/* For a source that is watched. */
void counters_end_rest(Counters *counters);

/* One of them, as it was read last; NULL: it was not, or has gone. Valid as long. */
const VgpuCounters *counters_known(const Counters *counters, const char *uuid);

/* One of them, read completely now; NULL: there is no such vGPU (any more). Valid as long. */
const VgpuCounters *counters_read_one(Counters *counters, const char *uuid);

/* As vgpu_states_set_watched(). */
void counters_set_watched(Counters *counters, gboolean watched);

/* As vgpu_states_forget(). */
void counters_forget(Counters *counters, const char *uuid);

#endif
