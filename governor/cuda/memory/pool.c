// SPDX-License-Identifier: MIT
/* Memory of pools: cuMemAllocAsync() and what belongs to it. */
#include <unistd.h>

#include "join.h"
#include "later.h"
#include "pool.h"
#include "pools.h"
#include "ranges.h"
#include "real.h"
#include "room.h"

#define LONGEST_WAIT_MS 100

/*
 * Reserves what the pool can grow by. Near the limit, it may be able to grow by less than a step.
 * To make room, this very pool may have been trimmed: then it grows by more.
 */
static bool take_growth(struct pool *pool, CUmemoryPool handle, uint64_t bytes)
{
    struct gpu *gpu = pool_gpu(pool);
    struct charge ahead = {0};
    uint64_t wanted = 0;

    while (!pool_begin(pool, handle, bytes, &ahead, &wanted)) {
        charge_give(&ahead);
        if (!room_take(gpu, wanted, &ahead) && (bytes >= wanted || !room_take(gpu, bytes, &ahead)))
            return false;
    }
    return true;
}

/*
 * At the limit, those that are under way are waited for, as they count twice if they have been
 * served. But not for long: one that the driver holds up may go on only after this one.
 */
static bool take_growth_in_time(struct pool *pool, CUmemoryPool handle, uint64_t bytes)
{
    uint64_t served = 0;

    pool_is_busy(pool, &served);
    for (unsigned int ms = 0; !take_growth(pool, handle, bytes); ms++) {
        if (ms == LONGEST_WAIT_MS || !pool_is_busy(pool, &served))
            return false;
        usleep(1000);
    }
    return true;
}

typedef CUresult allocate_function(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool,
                                   CUstream stream);

/* False: no memory. */
static bool track_memory(CUdeviceptr dptr, struct pool *pool)
{
    struct charge of = {.pool = pool};

    if (!ranges_put(&ranges_pooled, dptr, &of))
        return false;
    /* If the driver returns an address again, it was freed without us. */
    if (of.pool)
        pool_drop(of.pool);
    return true;
}

/* Without a lock, as the driver may wait for the stream. */
static CUresult allocate_reserved(struct pool *pool, CUmemoryPool handle, CUdeviceptr *dptr,
                                  size_t bytes, CUstream stream, allocate_function *function)
{
    CUresult result = function(dptr, bytes, handle, stream);
    bool settled = pool_end(pool, bytes, result == CUDA_SUCCESS);

    if (result != CUDA_SUCCESS || (settled && track_memory(*dptr, pool)))
        return result;
    /* The pool grew by more than was reserved. */
    DRIVER(cuMemFreeAsync, *dptr, stream);
    pool_drop(pool);
    pool_trim(pool);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult allocate_from(struct gpu *gpu, CUmemoryPool handle, CUdeviceptr *dptr, size_t bytes,
                              CUstream stream, allocate_function *function)
{
    struct pool *pool = pools_enter(handle, gpu, true);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (!pool)
        return result;
    if (take_growth_in_time(pool, handle, bytes))
        result = allocate_reserved(pool, handle, dptr, bytes, stream, function);
    pool_leave(pool);
    return result;
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

#define ALLOC_ASYNC(name)                                                                          \
    static CUresult call_##name(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool,                \
                                CUstream stream)                                                   \
    {                                                                                              \
        (void)pool;                                                                                \
        return DRIVER(name, dptr, bytes, stream);                                                  \
    }                                                                                              \
    CUresult name(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)                            \
    {                                                                                              \
        CUmemoryPool pool;                                                                         \
        struct gpu *gpu;                                                                           \
                                                                                                   \
        if (real_depth || !dptr || !current_pool(hStream, &gpu, &pool))                            \
            return REAL(name)(dptr, bytesize, hStream);                                            \
        return allocate_from(gpu, pool, dptr, bytesize, hStream, call_##name);                     \
    }
ALLOC_ASYNC(cuMemAllocAsync)
ALLOC_ASYNC(cuMemAllocAsync_ptsz)

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

    if (!handle || pools_find(handle, &gpu))
        return handle ? gpu : NULL;
    DRIVER(cuDeviceGetCount, &count);
    for (CUdevice device = 0; device < count; device++) {
        if (!is_of(handle, device))
            continue;
        gpu = gpu_of(device);
        pools_note(handle, gpu);
        return gpu;
    }
    return gpu_current();
}

/* Of managed memory that has no place, the first use says whose it is. */
static CUresult note_pool(CUresult result, const CUmemoryPool *pool, const CUmemLocation *location,
                          CUmemAllocationType type)
{
    bool on_device = location && location->type == CU_MEM_LOCATION_TYPE_DEVICE;

    if (result == CUDA_SUCCESS && !real_depth &&
        (on_device || type != CU_MEM_ALLOCATION_TYPE_MANAGED))
        pools_note(*pool, on_device ? gpu_of(location->id) : NULL);
    return result;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
                                CUmemAllocationType type)
{
    return note_pool(DRIVER(cuMemGetDefaultMemPool, pool_out, location, type), pool_out, location,
                     type);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    return note_pool(DRIVER(cuMemGetMemPool, pool, location, type), pool, location, type);
}

/* Its exporter is charged. */
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
                                            CUmemAllocationHandleType handleType,
                                            unsigned long long flags)
{
    CUresult result =
        DRIVER(cuMemPoolImportFromShareableHandle, pool_out, handle, handleType, flags);

    if (result == CUDA_SUCCESS && !real_depth)
        pools_note(*pool_out, NULL);
    return result;
}

#define ALLOC_FROM_POOL(name)                                                                      \
    static CUresult call_##name(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool,                \
                                CUstream stream)                                                   \
    {                                                                                              \
        return DRIVER(name, dptr, bytes, pool, stream);                                            \
    }                                                                                              \
    CUresult name(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)         \
    {                                                                                              \
        struct gpu *gpu = real_depth || !dptr ? NULL : gpu_of_pool(pool);                          \
                                                                                                   \
        if (!gpu)                                                                                  \
            return REAL(name)(dptr, bytesize, pool, hStream);                                      \
        return allocate_from(gpu, pool, dptr, bytesize, hStream, call_##name);                     \
    }
ALLOC_FROM_POOL(cuMemAllocFromPoolAsync)
ALLOC_FROM_POOL(cuMemAllocFromPoolAsync_ptsz)

struct pool *pool_before_free(CUdeviceptr dptr)
{
    struct charge of;

    return ranges_take(&ranges_pooled, dptr, &of) ? of.pool : NULL;
}

void pool_after_free(struct pool *pool, CUdeviceptr dptr, CUresult result)
{
    struct charge of = {.pool = pool};

    if (pool && (result == CUDA_SUCCESS || !ranges_put(&ranges_pooled, dptr, &of)))
        pool_drop(pool);
}

/*
 * Also frees memory of cuMemAlloc. A pool gives memory above its threshold back when the stream is
 * synchronized; that is seen at the next call for a pool.
 */
static CUresult free_async(CUdeviceptr dptr, CUstream stream, bool per_thread,
                           CUresult (*function)(CUdeviceptr dptr, CUstream stream))
{
    struct charge charge;
    bool known = ranges_take(&ranges_pointers, dptr, &charge);
    struct pool *pool = known ? NULL : pool_before_free(dptr);
    CUresult result;

    real_depth++;
    result = function(dptr, stream);
    real_depth--;
    if (known && result == CUDA_SUCCESS)
        later_give(&charge, stream, per_thread);
    else if (known && !ranges_put(&ranges_pointers, dptr, &charge))
        charge_give(&charge);
    pool_after_free(pool, dptr, result);
    if (!known)
        pools_settle();
    return result;
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    return real_depth ? REAL(cuMemFreeAsync)(dptr, hStream)
                      : free_async(dptr, hStream, false, REAL(cuMemFreeAsync));
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
    return real_depth ? REAL(cuMemFreeAsync_ptsz)(dptr, hStream)
                      : free_async(dptr, hStream, true, REAL(cuMemFreeAsync_ptsz));
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    CUresult result = DRIVER(cuMemPoolCreate, pool, poolProps);

    if (result != CUDA_SUCCESS)
        return result;
    return note_pool(result, pool, &poolProps->location, poolProps->allocType);
}

/* The driver returns at once, and keeps what is in use. */
CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
    struct pool *pool = real_depth || !handle ? NULL : pools_enter(handle, NULL, false);
    bool is_ours = pool && pool_withdraw(pool, handle);
    CUresult result = DRIVER(cuMemPoolDestroy, handle);

    if (is_ours && result != CUDA_SUCCESS)
        pool_restore(pool, handle);
    if (pool)
        pool_leave(pool);
    return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t minBytesToKeep)
{
    CUresult result = DRIVER(cuMemPoolTrimTo, handle, minBytesToKeep);

    if (!real_depth)
        pools_settle();
    return result;
}
