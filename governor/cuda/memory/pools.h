/* SPDX-License-Identifier: MIT */
/*
 * Pools of stream-ordered memory. The driver keeps more than is in use, so each pool is charged for
 * what it has reserved. What is in use of a pool that was destroyed is charged until it is freed.
 */
#ifndef GOVERNOR_CUDA_POOLS_H
#define GOVERNOR_CUDA_POOLS_H

#include "charge.h"

/* Adds it where it is not known. @gpu: NULL: nobody is charged. */
void pools_note(CUmemoryPool handle, struct gpu *gpu);
/* False: not seen so far. */
bool pools_find(CUmemoryPool handle, struct gpu **gpu);
/* To be left again. NULL: no memory, or not @may_add and not known. */
struct pool *pools_enter(CUmemoryPool handle, struct gpu *gpu, bool may_add);
void pool_leave(struct pool *pool);

/* Who is charged for it. */
struct gpu *pool_gpu(const struct pool *pool);

/*
 * Before an allocation of @bytes, for which @ahead was charged. False: @wanted is to be charged
 * first, which is more than so far.
 */
bool pool_begin(struct pool *pool, CUmemoryPool handle, uint64_t bytes, const struct charge *ahead,
                uint64_t *wanted);
/* After it. @pointers: that it has made. False: the pool grew by more than was charged. */
bool pool_end(struct pool *pool, uint64_t bytes, unsigned int pointers);
/* Whether any are under way, or have been since @served was read, which is read again. */
bool pool_is_busy(struct pool *pool, uint64_t *served);
/* A pointer of the program's is none any more. */
void pool_drop(struct pool *pool);
/* Returns what is unused of it to the driver. */
void pool_trim(struct pool *pool);

/*
 * From now on no thread uses the handle. What is unused is given back, so that what stays charged
 * is in use. False: another thread did the same.
 */
bool pool_withdraw(struct pool *pool, CUmemoryPool handle);
/* The driver has not destroyed it. If it was found to be unknown meanwhile, it is charged anew. */
void pool_restore(struct pool *pool, CUmemoryPool handle);

/* Corrects the charges of all pools. */
void pools_settle(void);
/* Returns all unused memory of @gpu's pools to the driver. True if there was any. */
bool pools_trim(struct gpu *gpu);

#endif
