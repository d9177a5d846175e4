/* SPDX-License-Identifier: MIT */
/*
 * How much of a GPU's memory is in use by all users. In this order: what its driver says at any
 * time (amdgpu); the last reading of NVIDIA's library, and what slices have taken and given back
 * since, because there are two readings a minute; or else what engines use and arbiters count,
 * without programs outside of slices.
 */
#ifndef METER_GPU_MEMORY_H
#define METER_GPU_MEMORY_H

#include "host-agent/meter/host_view.h"

typedef struct GpuMemory GpuMemory;

/* @view: lives longer. */
GpuMemory *gpu_memory_new(const HostView *view);

void gpu_memory_free(GpuMemory *memory);

/*
 * Bytes of the GPU's @vram that slices may have, right after counters_read(), whose result is
 * @vgpus. If that is not all of the card, programs outside of slices fill the rest of it first.
 * FALSE: unknown.
 */
gboolean gpu_memory_used(GpuMemory *memory, const Gpu *gpu, guint64 vram, const GPtrArray *vgpus,
                         guint64 *bytes);

#endif
