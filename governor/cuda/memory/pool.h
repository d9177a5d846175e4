/* SPDX-License-Identifier: MIT */
/*
 * Pools of stream-ordered memory. The driver keeps more than is in use, so each pool is charged for
 * what it has reserved. What is in use of a pool that was destroyed is charged until it is freed.
 */
#ifndef GOVERNOR_CUDA_POOL_H
#define GOVERNOR_CUDA_POOL_H

#include "gpu.h"

/* Returns all unused memory of @gpu's pools to the driver. True if there was any. */
bool pools_trim(struct gpu *gpu);

/*
 * Before the driver frees memory that may be a pool's, and after it. Right after the call another
 * thread can get the same address. NULL: no pool's.
 */
struct pool *pool_before_free(CUdeviceptr dptr);
void pool_after_free(struct pool *pool, CUdeviceptr dptr, CUresult result);

#endif
