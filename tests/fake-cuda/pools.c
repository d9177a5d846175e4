// SPDX-License-Identifier: MIT
/* Pools, which keep what is freed until they are trimmed. */
#include "fake.h"

#include <pthread.h>
#include <stdlib.h>

#include "card.h"
#include "timing.h"

#define STEP        (32ull << 20)
#define POOLED_MOST 4096

/* @device: whose memory it has
 * @elsewhere: it has the host's memory, or another process's, of which nothing new can be had
 * @destroyed: never freed, so that a dead handle is found out */
struct pool {
    int device;
    bool elsewhere;
    bool imported;
    bool destroyed;
    uint64_t reserved;
    uint64_t used;
};

struct pooled {
    CUdeviceptr dptr;
    uint64_t bytes;
    struct pool *pool;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool default_pools[CARD_DEVICES] = {{.device = 0}, {.device = 1}, {.device = 2}};
static struct pool managed_pool;
static struct pool host_pool = {.elsewhere = true};
static struct pooled pooled[POOLED_MOST];
void (*fake_around_pooled)(CUstream stream, bool is_done);
void (*fake_before_trim)(void);
void (*fake_after_pool_destroy)(void);

/* Whoever uses a pool that was destroyed may crash the driver. */
static struct pool *living(CUmemoryPool handle)
{
    struct pool *pool = (struct pool *)handle;

    if (pool && pool->destroyed)
        abort();
    return pool;
}

/* By a step, or where that is more than there is, by what is asked for. */
static int grow(struct pool *pool, uint64_t bytes)
{
    uint64_t more = pool->used + bytes > pool->reserved ? pool->used + bytes - pool->reserved : 0;
    uint64_t steps = (more + STEP - 1) / STEP * STEP;

    if (!more)
        return 1;
    /* A step that would not fit is not tried: the door reserves what it can. */
    if (getenv("FAKE_CUDA_SMALL_STEPS"))
        steps = more;
    if (!pool->elsewhere && !fake_take(pool->device, steps))
        return 0;
    pool->reserved += steps;
    return 1;
}

static void around(CUstream stream, bool is_done)
{
    if (fake_around_pooled)
        fake_around_pooled(stream, is_done);
}

static CUresult take(CUdeviceptr *dptr, uint64_t bytes, struct pool *pool)
{
    unsigned int i = 0;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (!dptr || !bytes || !pool || pool->imported)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    while (i < POOLED_MOST && pooled[i].dptr)
        i++;
    if (i < POOLED_MOST && grow(pool, bytes))
        result = fake_address(bytes, pool->device, dptr);
    if (result == CUDA_SUCCESS) {
        pool->used += bytes;
        pooled[i] = (struct pooled){.dptr = *dptr, .bytes = bytes, .pool = pool};
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult allocate(CUdeviceptr *dptr, uint64_t bytes, struct pool *pool, CUstream stream)
{
    CUresult result;

    around(stream, false);
    result = take(dptr, bytes, pool);
    around(stream, true);
    return result;
}

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytes, CUstream stream)
{
    ENTER();
    return allocate(dptr, bytes, &default_pools[fake_device_of(stream)], stream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytes, CUstream stream)
{
    ENTER();
    return allocate(dptr, bytes, &default_pools[fake_device_of(stream)], stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool,
                                 CUstream stream)
{
    ENTER();
    return allocate(dptr, bytes, living(pool), stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool,
                                      CUstream stream)
{
    ENTER();
    return allocate(dptr, bytes, living(pool), stream);
}

static void give(const struct pool *pool, uint64_t bytes)
{
    if (!pool->elsewhere && !pool->device)
        fake_give(bytes);
}

/* A pool that was destroyed goes with the last that was allocated from it. */
static void shrink(struct pool *pool, uint64_t bytes)
{
    pool->used -= bytes;
    if (pool->destroyed && !pool->used)
        give(pool, pool->reserved);
}

CUresult fake_free_any(CUdeviceptr dptr)
{
    unsigned int i = 0;

    pthread_mutex_lock(&lock);
    while (i < POOLED_MOST && (!dptr || pooled[i].dptr != dptr))
        i++;
    if (i < POOLED_MOST) {
        shrink(pooled[i].pool, pooled[i].bytes);
        pooled[i] = (struct pooled){0};
        fake_forget(dptr);
    }
    pthread_mutex_unlock(&lock);
    return i < POOLED_MOST ? CUDA_SUCCESS : fake_free(dptr);
}

#define FREES_MOST 4096

/* What is freed when its stream has come to that. */
static struct {
    uint32_t stream;
    uint64_t number;
    CUdeviceptr dptr;
} frees[FREES_MOST];
static unsigned int free_count;

static bool note_free(CUdeviceptr dptr, CUstream stream, bool per_thread)
{
    struct timing *timing = timing_enter();
    bool has_room = free_count < FREES_MOST;

    if (has_room) {
        frees[free_count].stream = timing_stream_of(timing, stream, per_thread);
        frees[free_count].number = timing->model.numbers;
        frees[free_count++].dptr = dptr;
    }
    timing_leave(timing);
    return has_room;
}

static CUdeviceptr take_reached(void)
{
    struct timing *timing = timing_enter();
    CUdeviceptr dptr = 0;

    for (unsigned int i = 0; i < free_count && !dptr; i++) {
        if (!model_passed(&timing->model, frees[i].stream, frees[i].number))
            continue;
        dptr = frees[i].dptr;
        frees[i] = frees[--free_count];
    }
    timing_leave(timing);
    return dptr;
}

void fake_free_reached(void)
{
    CUdeviceptr dptr;

    while (free_count && (dptr = take_reached()))
        fake_free_any(dptr);
}

static bool is_known(CUdeviceptr dptr)
{
    CUdeviceptr base;

    return fake_size_of(dptr, &base) && base == dptr;
}

static CUresult free_async(CUdeviceptr dptr, CUstream stream, bool per_thread)
{
    const struct model_op op = {.engine = MODEL_NONE, .kind = TIMING_FREE};
    CUresult result;

    if (!dptr || !is_known(dptr))
        return dptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    result = timing_submit(stream, per_thread, &op);
    if (result == CUDA_SUCCESS && !note_free(dptr, stream, per_thread))
        return fake_free_any(dptr);
    fake_free_reached();
    return result;
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream stream)
{
    ENTER();
    return free_async(dptr, stream, false);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream stream)
{
    ENTER();
    return free_async(dptr, stream, true);
}

static void trim(struct pool *pool, uint64_t keep)
{
    uint64_t least;

    pthread_mutex_lock(&lock);
    least = pool->used > keep ? pool->used : keep;
    if (pool->reserved > least) {
        give(pool, pool->reserved - least);
        pool->reserved = least;
    }
    pthread_mutex_unlock(&lock);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    ENTER();
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (fake_before_trim)
        fake_before_trim();
    trim(living(pool), keep);
    return CUDA_SUCCESS;
}

static bool is_managed(CUmemAllocationType type)
{
    return type == CU_MEM_ALLOCATION_TYPE_MANAGED;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    struct pool *made;

    ENTER();
    if (!pool || !properties)
        return CUDA_ERROR_INVALID_VALUE;
    made = calloc(1, sizeof(*made));
    if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        made->device = properties->location.id;
    else
        made->elsewhere = !is_managed(properties->allocType);
    *pool = (CUmemoryPool)made;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags)
{
    struct pool *made;

    ENTER();
    (void)handle;
    (void)type;
    (void)flags;
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    made = calloc(1, sizeof(*made));
    made->elsewhere = made->imported = true;
    *pool = (CUmemoryPool)made;
    return CUDA_SUCCESS;
}

static bool is_own(const void *pool)
{
    return pool == &default_pools[0] || pool == &default_pools[1] || pool == &default_pools[2] ||
           pool == &managed_pool || pool == &host_pool;
}

/* At once, whatever was allocated from it. */
static void destroy(struct pool *pool)
{
    pthread_mutex_lock(&lock);
    pool->destroyed = true;
    if (!pool->used)
        give(pool, pool->reserved);
    pthread_mutex_unlock(&lock);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    ENTER();
    if (!pool || is_own(pool))
        return CUDA_ERROR_INVALID_VALUE;
    destroy(living(pool));
    if (fake_after_pool_destroy)
        fake_after_pool_destroy();
    return CUDA_SUCCESS;
}

static CUresult pool_of(CUmemoryPool *pool, CUdevice device)
{
    if (device < 0 || device >= CARD_DEVICES)
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = (CUmemoryPool)&default_pools[device];
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    ENTER();
    return pool_of(pool, device);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    ENTER();
    return pool_of(pool, device);
}

static CUresult pool_at(CUmemoryPool *pool, const CUmemLocation *location, CUmemAllocationType type)
{
    if (!pool || !location)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_managed(type) && location->type == CU_MEM_LOCATION_TYPE_DEVICE)
        return pool_of(pool, location->id);
    *pool = (CUmemoryPool)(is_managed(type) ? &managed_pool : &host_pool);
    return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location,
                                CUmemAllocationType type)
{
    ENTER();
    return pool_at(pool, location, type);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    ENTER();
    return pool_at(pool, location, type);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    const struct pool *of = living(pool);

    ENTER();
    if (!of)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
        *(cuuint64_t *)value = of->reserved;
    else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
        *(cuuint64_t *)value = of->used;
    else
        *(cuuint64_t *)value = 0;
    return CUDA_SUCCESS;
}

/* Waiting for the card, the driver trims pools to their thresholds, which are 0 here. */
static CUresult synchronize(CUcontext context)
{
    CUresult result = capture_unsafe();

    if (result == CUDA_SUCCESS)
        result = timing_await_context(context);
    fake_free_reached();
    trim(&default_pools[fake_device()], 0);
    return result;
}

CUresult cuCtxSynchronize(void)
{
    ENTER();
    return synchronize(fake_current());
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
    ENTER();
    return synchronize(context);
}
