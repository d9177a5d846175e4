/* SPDX-License-Identifier: MIT */
/* Memory of pools that the program frees as any other. */
#ifndef GOVERNOR_CUDA_POOL_H
#define GOVERNOR_CUDA_POOL_H

#include "cuda_abi.h"

struct pool;

/*
 * Before the driver frees memory that may be a pool's, and after it. Right after the call another
 * thread can get the same address. NULL: no pool's.
 */
struct pool *pool_before_free(CUdeviceptr dptr);
void pool_after_free(struct pool *pool, CUdeviceptr dptr, CUresult result);

#endif
