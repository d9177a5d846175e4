/* SPDX-License-Identifier: MIT */
/* All metrics of a host for Prometheus. */
#ifndef VGPUD_METRICS_HOST_METRICS_H
#define VGPUD_METRICS_HOST_METRICS_H

#include "host-agent/daemon/engines/counters.h"
#include "host-agent/model/slice.h"
#include "lib/gpu.h"
#include "lib/readings.h"

/**
 * GpuMetrics - a GPU and its known values
 * @vram: its bytes; 0: not known
 * @capacity: bytes that may be promised, overcommitment included; 0: it is not shared
 * @vram_used_known, @vram_used: bytes in use now, by all users
 * @mark: free bytes that should be kept; 0: none
 */
typedef struct {
    const Gpu *gpu;
    GpuReadings readings;
    guint64 vram;
    guint64 capacity;
    gboolean vram_used_known;
    guint64 vram_used;
    guint64 mark;
    gboolean healthy;
} GpuMetrics;

/**
 * SliceMetrics - a container's slice that is no vGPU
 * @use: NULL: not reported by its GPU's arbiter
 * @container: its present user; NULL: none
 */
typedef struct {
    const Slice *slice;
    const SliceUse *use;
    const char *container;
} SliceMetrics;

/**
 * HostMetrics
 * @started: when vgpud was started, in seconds since 1970
 * @gpus: of GpuMetrics
 * @vgpus: of VgpuCounters
 * @slices: of SliceMetrics
 * @slice: the slice of vGPU @uuid; NULL: unknown
 */
typedef struct {
    gint64 started;
    const GArray *gpus;
    const GPtrArray *vgpus;
    const GArray *slices;
    const Slice *(*slice)(const char *uuid, void *data);
    void *data;
} HostMetrics;

#endif
