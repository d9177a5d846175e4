/* SPDX-License-Identifier: MIT */
/*
 * How much of a GPU's memory is in use by all users. In this order: what its driver says at any
 * time (amdgpu); the last reading of NVIDIA's library, and what slices have taken and given back
 * since, because there are two readings a minute; or else what engines use and arbiters count,
 * without programs outside of slices.
 */
#ifndef METER_GPU_MEMORY_H
#define METER_GPU_MEMORY_H

#include "host-agent/daemon/slices/slices.h"

typedef struct GpuMemory GpuMemory;

/* Both live longer. */
GpuMemory *gpu_memory_new(const Host *host, const Slices *slices);

void gpu_memory_free(GpuMemory *memory);

/* Bytes, right after counters_read(), whose result is @vgpus. FALSE: unknown. */
gboolean gpu_memory_used(GpuMemory *memory, const PciDevice *pci, const GPtrArray *vgpus,
                         guint64 *bytes);

#endif
