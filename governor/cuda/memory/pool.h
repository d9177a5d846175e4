/* SPDX-License-Identifier: MIT */
/*
 * Pools of stream-ordered memory. The driver keeps more than is in use, so each pool is charged for
 * what it has reserved.
 */
#ifndef GOVERNOR_CUDA_POOL_H
#define GOVERNOR_CUDA_POOL_H

#include "gpu.h"

/* Returns all unused memory of @gpu's pools to the driver. True if there was any. */
bool pools_trim(struct gpu *gpu);

#endif
