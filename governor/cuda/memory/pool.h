/* SPDX-License-Identifier: MIT */
/*
 * Pools of memory that is allocated in the order of a stream. The driver keeps more of it than is
 * in use, so that what is charged is what the pool says it has reserved.
 */
#ifndef GOVERNOR_CUDA_POOL_H
#define GOVERNOR_CUDA_POOL_H

#include "gpu.h"

/* Of what the pools of @gpu keep unused, all goes back to the driver. True where that was
 * something. */
bool pools_trim(struct gpu *gpu);

#endif
