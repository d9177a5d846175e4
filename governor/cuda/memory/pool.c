// SPDX-License-Identifier: MIT
#include "pool.h"

#include <stdlib.h>
#include <unistd.h>

#include "ranges.h"
#include "forks.h"
#include "later.h"
#include "real.h"

/* Drivers grow a pool in steps of 32 MiB. */
#define POOL_STEP       (32u << 20)
#define LONGEST_WAIT_MS 100

/**
 * struct pool - never freed, for a thread may have found it
 * @taken: by a pool, or by memory that has outlived one
 * @handle: NULL: the program has destroyed it; changed under the list's lock, cleared under @lock,
 *          too
 * @calls: of threads that may use @handle, and expect it to be this pool
 * @lock: over what follows, and over calls with @handle, which is dead when it has been cleared.
 *        None of these calls waits for a stream
 * @charge: at least what the pool has reserved, and what it may yet for those that are under way.
 *          Of a pool that was destroyed: all of it, as the driver keeps it, until the last pointer
 *          is freed
 * @under_way: bytes of allocations for which the driver is called, and may have been served or not
 * @served: how many of these there have been
 * @pointers: how many of the program's are of this pool
 */
struct pool {
    struct pool *next;
    _Atomic bool taken;
    _Atomic(CUmemoryPool) handle;
    _Atomic unsigned int calls;
    pthread_mutex_t lock;
    struct charge charge;
    uint64_t under_way;
    uint64_t served;
    uint64_t pointers;
};

/* Over the list; taken after a pool's. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Only added to, in front. */
static struct pool *pools;

static struct pool *find(CUmemoryPool handle)
{
    struct pool *pool = pools;

    while (pool && pool->handle != handle)
        pool = pool->next;
    return pool;
}

static struct pool *find_free(void)
{
    struct pool *pool = pools;

    while (pool && pool->taken)
        pool = pool->next;
    return pool;
}

static struct pool *add(CUmemoryPool handle, struct gpu *gpu)
{
    struct pool *pool = find_free();

    if (!pool) {
        pool = calloc(1, sizeof(*pool));
        if (!pool)
            return NULL;
        pthread_mutex_init(&pool->lock, NULL);
        pool->next = pools;
        pools = pool;
    }
    pool->taken = true;
    pool->charge = (struct charge){.gpu = gpu};
    pool->handle = handle;
    return pool;
}

/* Adds it where it is not known. */
static void note_pool(CUmemoryPool handle, struct gpu *gpu)
{
    pthread_mutex_lock(&lock);
    if (!find(handle))
        add(handle, gpu);
    pthread_mutex_unlock(&lock);
}

/* To be left again. NULL: no memory, or not @may_add and not known. */
static struct pool *enter(CUmemoryPool handle, struct gpu *gpu, bool may_add)
{
    struct pool *pool;

    pthread_mutex_lock(&lock);
    pool = find(handle);
    if (!pool && may_add)
        pool = add(handle, gpu);
    if (pool)
        pool->calls++;
    pthread_mutex_unlock(&lock);
    return pool;
}

/* If nothing is left of it, another pool can take its place. Under the pool's lock. */
static void end_if_over(struct pool *pool)
{
    if (pool->handle || pool->pointers || pool->calls)
        return;
    charge_give(&pool->charge);
    pool->taken = false;
}

static void leave(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->calls--;
    end_if_over(pool);
    pthread_mutex_unlock(&pool->lock);
}

static uint64_t ask(CUmemoryPool handle, CUmemPool_attribute attribute)
{
    cuuint64_t value = 0;

    DRIVER(cuMemPoolGetAttribute, handle, attribute, &value);
    return value;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/*
 * By how much a pool with so much reserved can grow until those that are under way, and one of
 * @bytes, have been served. All of them count as not yet served. Under the pool's lock.
 */
static uint64_t growth(const struct pool *pool, CUmemoryPool handle, uint64_t reserved,
                       uint64_t bytes)
{
    uint64_t wanted = sum(pool->under_way, bytes);
    uint64_t used = wanted ? ask(handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) : 0;
    uint64_t unused = reserved > used ? reserved - used : 0;

    return wanted <= unused ? 0 : charge_round(wanted - unused, POOL_STEP);
}

/*
 * Corrects the charge to what the pool has reserved, and may yet. False: beyond the limit. Under
 * the pool's lock.
 */
static bool settle_locked(struct pool *pool)
{
    CUmemoryPool handle = pool->handle;
    uint64_t reserved, most;

    if (!handle || !pool->charge.gpu)
        return true;
    reserved = ask(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    most = sum(reserved, growth(pool, handle, reserved, 0));
    if (pool->charge.bytes > most)
        return charge_resize(&pool->charge, most);
    return pool->charge.bytes >= reserved || charge_resize(&pool->charge, reserved);
}

static bool settle(struct pool *pool)
{
    bool settled;

    pthread_mutex_lock(&pool->lock);
    settled = settle_locked(pool);
    pthread_mutex_unlock(&pool->lock);
    return settled;
}

/* Not what those that are under way count on. Under the pool's lock. */
static void trim_locked(struct pool *pool)
{
    CUmemoryPool handle = pool->handle;
    uint64_t keep = 0;

    if (!handle)
        return;
    if (pool->under_way)
        keep = sum(ask(handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), pool->under_way);
    if (DRIVER(cuMemPoolTrimTo, handle, keep) == CUDA_SUCCESS)
        settle_locked(pool);
}

static void trim(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    trim_locked(pool);
    pthread_mutex_unlock(&pool->lock);
}

/*
 * What has to be reserved before one of @bytes is under way. A pool that was destroyed meanwhile
 * cannot be asked. Under the pool's lock.
 */
static uint64_t missing(const struct pool *pool, CUmemoryPool handle, uint64_t bytes)
{
    uint64_t reserved, needed;

    if (!pool->charge.gpu)
        return 0;
    if (pool->handle != handle)
        return bytes;
    reserved = ask(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    needed = sum(reserved, growth(pool, handle, reserved, bytes));
    return needed > pool->charge.bytes ? needed - pool->charge.bytes : 0;
}

/* False: @wanted is to be reserved first, which is more than so far. */
static bool begin(struct pool *pool, CUmemoryPool handle, uint64_t bytes,
                  const struct charge *ahead, uint64_t *wanted)
{
    bool is_enough;
    uint64_t now;

    pthread_mutex_lock(&pool->lock);
    now = missing(pool, handle, bytes);
    is_enough = now <= *wanted;
    if (is_enough) {
        pool->charge.bytes += ahead->bytes;
        pool->under_way += bytes;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!is_enough)
        *wanted = now;
    return is_enough;
}

/*
 * Reserves what the pool can grow by. Near the limit, it may be able to grow by less than a step.
 * To make room, this very pool may have been trimmed: then it grows by more.
 */
static bool take_growth(struct pool *pool, CUmemoryPool handle, uint64_t bytes)
{
    struct gpu *gpu = pool->charge.gpu;
    struct charge ahead = {0};
    uint64_t wanted = 0;

    while (!begin(pool, handle, bytes, &ahead, &wanted)) {
        charge_give(&ahead);
        if (!charge_take(gpu, wanted, &ahead) &&
            (bytes >= wanted || !charge_take(gpu, bytes, &ahead)))
            return false;
    }
    return true;
}

/* Whether any are, or have been since @served was read, which is read again. */
static bool are_under_way(struct pool *pool, uint64_t *served)
{
    bool are;

    pthread_mutex_lock(&pool->lock);
    are = pool->under_way || pool->served != *served;
    *served = pool->served;
    pthread_mutex_unlock(&pool->lock);
    return are;
}

/*
 * At the limit, those that are under way are waited for, as they count twice if they have been
 * served. But not for long: one that the driver holds up may go on only after this one.
 */
static bool take_growth_in_time(struct pool *pool, CUmemoryPool handle, uint64_t bytes)
{
    uint64_t served = 0;

    are_under_way(pool, &served);
    for (unsigned int ms = 0; !take_growth(pool, handle, bytes); ms++) {
        if (ms == LONGEST_WAIT_MS || !are_under_way(pool, &served))
            return false;
        usleep(1000);
    }
    return true;
}

typedef CUresult allocate_function(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool,
                                   CUstream stream);

/* After the call. @pointers: that it has made. */
static bool end(struct pool *pool, uint64_t bytes, unsigned int pointers)
{
    bool settled;

    pthread_mutex_lock(&pool->lock);
    pool->under_way -= bytes;
    pool->served++;
    pool->pointers += pointers;
    settled = settle_locked(pool);
    pthread_mutex_unlock(&pool->lock);
    return settled;
}

/* A pointer of the program's is none any more. */
static void drop(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->pointers--;
    end_if_over(pool);
    pthread_mutex_unlock(&pool->lock);
}

/* False: no memory. */
static bool track(CUdeviceptr dptr, struct pool *pool)
{
    struct charge of = {.pool = pool};

    if (!ranges_put(&ranges_pooled, dptr, &of))
        return false;
    /* If the driver returns an address again, it was freed without us. */
    if (of.pool)
        drop(of.pool);
    return true;
}

/* Without a lock, as the driver may wait for the stream. */
static CUresult allocate_reserved(struct pool *pool, CUmemoryPool handle, CUdeviceptr *dptr,
                                  size_t bytes, CUstream stream, allocate_function *function)
{
    CUresult result = function(dptr, bytes, handle, stream);
    bool settled = end(pool, bytes, result == CUDA_SUCCESS);

    if (result != CUDA_SUCCESS || (settled && track(*dptr, pool)))
        return result;
    /* The pool grew by more than was reserved. */
    DRIVER(cuMemFreeAsync, *dptr, stream);
    drop(pool);
    trim(pool);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult allocate(struct gpu *gpu, CUmemoryPool handle, CUdeviceptr *dptr, size_t bytes,
                         CUstream stream, allocate_function *function)
{
    struct pool *pool = enter(handle, gpu, true);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (!pool)
        return result;
    if (take_growth_in_time(pool, handle, bytes))
        result = allocate_reserved(pool, handle, dptr, bytes, stream, function);
    leave(pool);
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
        return allocate(gpu, pool, dptr, bytesize, hStream, call_##name);                          \
    }
ALLOC_ASYNC(cuMemAllocAsync)
ALLOC_ASYNC(cuMemAllocAsync_ptsz)

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
        note_pool(handle, gpu);
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
        note_pool(*pool, on_device ? gpu_of(location->id) : NULL);
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
        note_pool(*pool_out, NULL);
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
        return allocate(gpu, pool, dptr, bytesize, hStream, call_##name);                          \
    }
ALLOC_FROM_POOL(cuMemAllocFromPoolAsync)
ALLOC_FROM_POOL(cuMemAllocFromPoolAsync_ptsz)

static struct pool *first(void)
{
    struct pool *pool;

    pthread_mutex_lock(&lock);
    pool = pools;
    pthread_mutex_unlock(&lock);
    return pool;
}

static void settle_all(void)
{
    for (struct pool *pool = first(); pool; pool = pool->next)
        settle(pool);
}

struct pool *pool_before_free(CUdeviceptr dptr)
{
    struct charge of;

    return ranges_take(&ranges_pooled, dptr, &of) ? of.pool : NULL;
}

void pool_after_free(struct pool *pool, CUdeviceptr dptr, CUresult result)
{
    struct charge of = {.pool = pool};

    if (pool && (result == CUDA_SUCCESS || !ranges_put(&ranges_pooled, dptr, &of)))
        drop(pool);
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
        settle_all();
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
    return note(result, pool, &poolProps->location, poolProps->allocType);
}

/*
 * From now on no thread uses the handle. What is unused is given back, so that what stays charged
 * is in use. False: another thread did the same.
 */
static bool withdraw(struct pool *pool, CUmemoryPool handle)
{
    bool is_ours;

    pthread_mutex_lock(&pool->lock);
    is_ours = pool->handle == handle;
    if (is_ours) {
        trim_locked(pool);
        pthread_mutex_lock(&lock);
        pool->handle = NULL;
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return is_ours;
}

/* The driver has not destroyed it. If it was found to be unknown meanwhile, it is charged anew. */
static void restore(struct pool *pool, CUmemoryPool handle)
{
    pthread_mutex_lock(&lock);
    if (!find(handle))
        pool->handle = handle;
    pthread_mutex_unlock(&lock);
}

/* The driver returns at once, and keeps what is in use. */
CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
    struct pool *pool = real_depth || !handle ? NULL : enter(handle, NULL, false);
    bool is_ours = pool && withdraw(pool, handle);
    CUresult result = DRIVER(cuMemPoolDestroy, handle);

    if (is_ours && result != CUDA_SUCCESS)
        restore(pool, handle);
    if (pool)
        leave(pool);
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

    for (struct pool *pool = first(); pool; pool = pool->next) {
        pthread_mutex_lock(&pool->lock);
        if (pool->handle && pool->charge.gpu == gpu)
            trim_locked(pool);
        pthread_mutex_unlock(&pool->lock);
    }
    return atomic_load(&gpu->charged) < before;
}

void pools_forget_parent(void)
{
    pthread_mutex_init(&lock, NULL);
    pools = NULL;
}
