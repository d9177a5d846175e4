/* SPDX-License-Identifier: MIT */
/* What Prometheus' text says of vGPUs and tenants. */
#ifndef METER_VGPU_METRICS_H
#define METER_VGPU_METRICS_H

#include <glib.h>

#include "lib/gpu.h"
#include "lib/readings.h"
#include "host-agent/meter/counters.h"
#include "host-agent/meter/exposition.h"
#include "host-agent/model/gpu_health.h"
#include "host-agent/model/slice.h"

/* All metrics of a host for Prometheus. */

/**
 * GpuMetrics - a GPU and its known values
 * @vram: its bytes; 0: not known
 * @capacity: bytes that may be promised, overcommitment included; 0: it is not shared
 * @vram_used_known, @vram_used: bytes in use now, by all users
 * @mark: free bytes that should be kept; 0: none
 * @health: its findings; NULL: it was never looked at
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
    const GpuHealth *health;
} GpuMetrics;

/**
 * SliceMetrics - a container's slice that is no vGPU
 * @use: NULL: not reported by its GPU's arbiter
 * @container: one of its present users; NULL: none
 * @containers: all of them
 * @ungoverned: processes that use the GPU without the governor
 */
typedef struct {
    const Slice *slice;
    const SliceUse *use;
    const char *container;
    GStrv containers;
    guint ungoverned;
} SliceMetrics;

/**
 * HostMetrics
 * @started: when vgpud was started, in seconds since 1970
 * @agent_up: it runs
 * @gpus: of GpuMetrics
 * @vgpus: of VgpuCounters
 * @slices: of SliceMetrics
 * @slice: the slice of vGPU @uuid; NULL: unknown
 */
typedef struct {
    gint64 started;
    gboolean agent_up;
    const GArray *gpus;
    const GPtrArray *vgpus;
    const GArray *slices;
    const Slice *(*slice)(const char *uuid, void *data);
    void *data;
} HostMetrics;

/* Metrics of vGPUs, and sums of vGPUs and containers' slices by GPU and by tenant. */

/**
 * Share - promises to a tenant, or of a GPU
 */
typedef struct {
    guint vgpus;
    guint64 vram;
    guint compute;
} Share;

typedef struct VgpuTable VgpuTable;

/* @host: lives longer. */
VgpuTable *vgpu_table_new(const HostMetrics *host);

void vgpu_table_free(VgpuTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VgpuTable, vgpu_table_free)

/* The promised part of the GPU at @address. Valid as long as @table. */
const Share *vgpu_table_of_gpu(const VgpuTable *table, const char *address);

void add_vgpu_metrics(Exposition *exposition, const VgpuTable *table);
void add_tenant_metrics(Exposition *exposition, const VgpuTable *table);

#endif
