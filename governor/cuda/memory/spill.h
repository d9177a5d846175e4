/* SPDX-License-Identifier: MIT */
/*
 * Memory beyond the limit of a slice that has a spill: managed memory that stays in the host's
 * memory, where the GPU reaches it over the bus.
 */
#ifndef GOVERNOR_CUDA_SPILL_H
#define GOVERNOR_CUDA_SPILL_H

#include "gpu.h"

/*
 * False: the GPU has to hold managed memory that it uses (CONCURRENT_MANAGED_ACCESS is 0), so
 * nothing can stay elsewhere.
 */
bool spill_possible(const struct gpu *gpu);
/* Keeps managed memory in the host's. False: the driver refuses. */
bool spill_place(const struct gpu *gpu, CUdeviceptr at, size_t bytes);
/* Allocates @bytes there; cuMemFree frees them. */
CUresult spill_alloc(const struct gpu *gpu, CUdeviceptr *at, size_t bytes);

#endif
