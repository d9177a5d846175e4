// SPDX-License-Identifier: MIT
#include "pool.h"

#include <stdlib.h>

#include "ranges.h"
#include "forks.h"
#include "real.h"

/* Drivers grow a pool in steps of 32 MiB. */
#define POOL_STEP (32u << 20)

/* @turn: of allocations, each of which has to see what it made the pool grow by; taken before @lock
 * @lock: over @charge, and over what the pool says of itself while it is set right
 * Never freed, for a thread may wait for it: a pool that is gone has no @handle. */
struct pool {
    struct pool *next;
    pthread_mutex_t turn;
    pthread_mutex_t lock;
    CUmemoryPool handle;
    struct charge charge;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool *pools;

static struct pool *find(CUmemoryPool handle)
{
    struct pool *pool = pools;

    while (pool && pool->handle != handle)
        pool = pool->next;
    return pool;
}

static struct pool *add(CUmemoryPool handle, struct gpu *gpu)
{
    struct pool *pool = find(NULL);

    if (!pool) {
        pool = calloc(1, sizeof(*pool));
        if (!pool)
            return NULL;
        pthread_mutex_init(&pool->turn, NULL);
        pthread_mutex_init(&pool->lock, NULL);
        pool->next = pools;
        pools = pool;
    }
    pool->handle = handle;
    pool->charge = (struct charge){.gpu = gpu};
    return pool;
}

/* NULL: no memory. */
static struct pool *pool_of(CUmemoryPool handle, struct gpu *gpu)
{
    struct pool *pool;

    pthread_mutex_lock(&lock);
    pool = find(handle);
    if (!pool)
        pool = add(handle, gpu);
    pthread_mutex_unlock(&lock);
    return pool;
}

static uint64_t ask(CUmemoryPool handle, CUmemPool_attribute attribute)
{
    cuuint64_t value = 0;

    DRIVER(cuMemPoolGetAttribute, handle, attribute, &value);
    return value;
}

/* Corrects the charge to what the pool has reserved. False: beyond the limit. */
static bool settle(struct pool *pool)
{
    bool settled;

    pthread_mutex_lock(&pool->lock);
    settled = !pool->handle || !pool->charge.gpu ||
              charge_resize(&pool->charge, ask(pool->handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
    pthread_mutex_unlock(&pool->lock);
    return settled;
}

/* By how much @bytes more can make the pool grow. */
static uint64_t growth(CUmemoryPool handle, uint64_t bytes)
{
    uint64_t reserved = ask(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    uint64_t used = ask(handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    uint64_t unused = reserved > used ? reserved - used : 0;

    return bytes <= unused ? 0 : charge_round(bytes - unused, POOL_STEP);
}

/*
 * Reserves what the pool can grow by. Near the limit, it may be able to grow by less than a step.
 * To make room, this very pool may have been trimmed: then it grows by more.
 */
static bool take_growth(struct gpu *gpu, CUmemoryPool handle, uint64_t bytes, struct charge *charge)
{
    uint64_t wanted = growth(handle, bytes);

    while (charge_take(gpu, wanted, charge) ||
           (bytes < wanted && charge_take(gpu, bytes, charge))) {
        uint64_t now = growth(handle, bytes);

        if (now <= wanted)
            return true;
        charge_give(charge);
        wanted = now;
    }
    return false;
}

typedef CUresult allocate_function(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool,
                                   CUstream stream);

/* Adds what was reserved for growth to the pool's charge, and corrects that. */
static bool settle_growth(struct pool *pool, struct charge *ahead)
{
    pthread_mutex_lock(&pool->lock);
    pool->charge.bytes += ahead->bytes;
    pthread_mutex_unlock(&pool->lock);
    return settle(pool);
}

static CUresult allocate_in_turn(struct pool *pool, struct gpu *gpu, CUdeviceptr *dptr,
                                 size_t bytes, CUstream stream, allocate_function *function)
{
    CUmemoryPool handle = pool->handle;
    struct charge ahead = {0};
    CUresult result;

    if (!take_growth(gpu, handle, bytes, &ahead))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = function(dptr, bytes, handle, stream);
    if (settle_growth(pool, &ahead) || result != CUDA_SUCCESS)
        return result;
    /* The pool grew by more than was reserved. */
    DRIVER(cuMemFreeAsync, *dptr, stream);
    DRIVER(cuMemPoolTrimTo, handle, 0);
    settle(pool);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult allocate(struct gpu *gpu, CUmemoryPool handle, CUdeviceptr *dptr, size_t bytes,
                         CUstream stream, allocate_function *function)
{
    struct pool *pool = pool_of(handle, gpu);
    CUresult result;

    if (!pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&pool->turn);
    result = allocate_in_turn(pool, gpu, dptr, bytes, stream, function);
    pthread_mutex_unlock(&pool->turn);
    return result;
}

static CUresult from_current(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    (void)pool;
    return DRIVER(cuMemAllocAsync, dptr, bytes, stream);
}

static CUresult from_current_ptsz(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool,
                                  CUstream stream)
{
    (void)pool;
    return DRIVER(cuMemAllocAsync_ptsz, dptr, bytes, stream);
}

static CUresult from_pool(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    return DRIVER(cuMemAllocFromPoolAsync, dptr, bytes, pool, stream);
}

static CUresult from_pool_ptsz(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    return DRIVER(cuMemAllocFromPoolAsync_ptsz, dptr, bytes, pool, stream);
}

static bool is_of_other_context(CUstream stream, CUcontext *context)
{
    CUcontext current = NULL;

    *context = NULL;
    return stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD &&
           DRIVER(cuStreamGetCtx, stream, context) == CUDA_SUCCESS && *context &&
           DRIVER(cuCtxGetCurrent, &current) == CUDA_SUCCESS && *context != current;
}

/* Whatever context the thread has. */
static struct gpu *gpu_of_stream(CUstream stream)
{
    CUcontext context;
    struct gpu *gpu;

    if (!is_of_other_context(stream, &context) ||
        DRIVER(cuCtxPushCurrent_v2, context) != CUDA_SUCCESS)
        return gpu_current();
    gpu = gpu_current();
    DRIVER(cuCtxPopCurrent_v2, &context);
    return gpu;
}

/* The pool that the stream's device uses now. False: nothing to govern. */
static bool current_pool(CUstream stream, struct gpu **gpu, CUmemoryPool *pool)
{
    *gpu = gpu_of_stream(stream);
    return *gpu && DRIVER(cuDeviceGetMemPool, pool, (*gpu)->device) == CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    CUmemoryPool pool;
    struct gpu *gpu;

    if (real_depth || !dptr || !current_pool(hStream, &gpu, &pool))
        return REAL(cuMemAllocAsync)(dptr, bytesize, hStream);
    return allocate(gpu, pool, dptr, bytesize, hStream, from_current);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    CUmemoryPool pool;
    struct gpu *gpu;

    if (real_depth || !dptr || !current_pool(hStream, &gpu, &pool))
        return REAL(cuMemAllocAsync_ptsz)(dptr, bytesize, hStream);
    return allocate(gpu, pool, dptr, bytesize, hStream, from_current_ptsz);
}

/* False: not seen so far. @gpu: NULL: nobody is charged. */
static bool is_known(CUmemoryPool handle, struct gpu **gpu)
{
    const struct pool *pool;

    pthread_mutex_lock(&lock);
    pool = find(handle);
    *gpu = pool ? pool->charge.gpu : NULL;
    pthread_mutex_unlock(&lock);
    return pool;
}

static bool is_of(CUmemoryPool handle, CUdevice device)
{
    CUmemoryPool own;

    return (DRIVER(cuDeviceGetDefaultMemPool, &own, device) == CUDA_SUCCESS && own == handle) ||
           (DRIVER(cuDeviceGetMemPool, &own, device) == CUDA_SUCCESS && own == handle);
}

/*
 * Devices' own pools are not created by the program, and any of them can be used, whatever context
 * the thread has. Managed memory that has no place counts as if it were on the GPU in use.
 */
static struct gpu *gpu_of_pool(CUmemoryPool handle)
{
    struct gpu *gpu;
    int count = 0;

    if (!handle || is_known(handle, &gpu))
        return handle ? gpu : NULL;
    DRIVER(cuDeviceGetCount, &count);
    for (CUdevice device = 0; device < count; device++) {
        if (!is_of(handle, device))
            continue;
        gpu = gpu_of(device);
        pool_of(handle, gpu);
        return gpu;
    }
    return gpu_current();
}

/* Of managed memory that has no place, the first use says whose it is. */
static CUresult note(CUresult result, const CUmemoryPool *pool, const CUmemLocation *location,
                     CUmemAllocationType type)
{
    bool on_device = location && location->type == CU_MEM_LOCATION_TYPE_DEVICE;

    if (result == CUDA_SUCCESS && !real_depth &&
        (on_device || type != CU_MEM_ALLOCATION_TYPE_MANAGED))
        pool_of(*pool, on_device ? gpu_of(location->id) : NULL);
    return result;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
                                CUmemAllocationType type)
{
    return note(DRIVER(cuMemGetDefaultMemPool, pool_out, location, type), pool_out, location, type);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    return note(DRIVER(cuMemGetMemPool, pool, location, type), pool, location, type);
}

/* Its exporter is charged. */
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
                                            CUmemAllocationHandleType handleType,
                                            unsigned long long flags)
{
    CUresult result =
        DRIVER(cuMemPoolImportFromShareableHandle, pool_out, handle, handleType, flags);

    if (result == CUDA_SUCCESS && !real_depth)
        pool_of(*pool_out, NULL);
    return result;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                 CUstream hStream)
{
    struct gpu *gpu = real_depth || !dptr ? NULL : gpu_of_pool(pool);

    if (!gpu)
        return REAL(cuMemAllocFromPoolAsync)(dptr, bytesize, pool, hStream);
    return allocate(gpu, pool, dptr, bytesize, hStream, from_pool);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                      CUstream hStream)
{
    struct gpu *gpu = real_depth || !dptr ? NULL : gpu_of_pool(pool);

    if (!gpu)
        return REAL(cuMemAllocFromPoolAsync_ptsz)(dptr, bytesize, pool, hStream);
    return allocate(gpu, pool, dptr, bytesize, hStream, from_pool_ptsz);
}

static void settle_all(void)
{
    struct pool *pool;

    pthread_mutex_lock(&lock);
    pool = pools;
    pthread_mutex_unlock(&lock);
    /* Pools are only added in front. */
    for (; pool; pool = pool->next)
        settle(pool);
}

/*
 * Also frees memory of cuMemAlloc. A pool gives memory above its threshold back when the stream is
 * synchronized; that is seen at the next call for a pool.
 */
static CUresult free_async(CUdeviceptr dptr, CUstream stream,
                           CUresult (*function)(CUdeviceptr dptr, CUstream stream))
{
    struct charge charge;
    bool known = ranges_take(&ranges_pointers, dptr, &charge);
    CUresult result;

    real_depth++;
    result = function(dptr, stream);
    real_depth--;
    if (known && (result == CUDA_SUCCESS || !ranges_put(&ranges_pointers, dptr, &charge)))
        charge_give(&charge);
    if (!known)
        settle_all();
    return result;
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    return real_depth ? REAL(cuMemFreeAsync)(dptr, hStream)
                      : free_async(dptr, hStream, REAL(cuMemFreeAsync));
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
    return real_depth ? REAL(cuMemFreeAsync_ptsz)(dptr, hStream)
                      : free_async(dptr, hStream, REAL(cuMemFreeAsync_ptsz));
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    CUresult result = DRIVER(cuMemPoolCreate, pool, poolProps);

    if (result != CUDA_SUCCESS)
        return result;
    return note(result, pool, &poolProps->location, poolProps->allocType);
}

CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
    struct charge charge = {0};
    CUresult result;
    struct pool *pool;

    if (real_depth)
        return REAL(cuMemPoolDestroy)(handle);
    pthread_mutex_lock(&lock);
    pool = handle ? find(handle) : NULL;
    pthread_mutex_unlock(&lock);
    result = DRIVER(cuMemPoolDestroy, handle);
    if (!pool || result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    pthread_mutex_lock(&pool->lock);
    pool->handle = NULL;
    charge = pool->charge;
    pool->charge = (struct charge){0};
    pthread_mutex_unlock(&pool->lock);
    pthread_mutex_unlock(&lock);
    charge_give(&charge);
    return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t minBytesToKeep)
{
    CUresult result = DRIVER(cuMemPoolTrimTo, handle, minBytesToKeep);

    if (!real_depth)
        settle_all();
    return result;
}

bool pools_trim(struct gpu *gpu)
{
    uint64_t before = atomic_load(&gpu->charged);
    struct pool *pool;

    pthread_mutex_lock(&lock);
    pool = pools;
    pthread_mutex_unlock(&lock);
    for (; pool; pool = pool->next) {
        CUmemoryPool handle = pool->handle;

        if (handle && pool->charge.gpu == gpu && DRIVER(cuMemPoolTrimTo, handle, 0) == CUDA_SUCCESS)
            settle(pool);
    }
    return atomic_load(&gpu->charged) < before;
}

void pools_forget_parent(void)
{
    pthread_mutex_init(&lock, NULL);
    pools = NULL;
}
