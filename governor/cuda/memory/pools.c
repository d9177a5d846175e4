// SPDX-License-Identifier: MIT
#include "pools.h"

#include <stdlib.h>

#include "forks.h"
#include "real.h"

/* Drivers grow a pool in steps of 32 MiB. */
#define POOL_STEP (32u << 20)

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

static struct pool *find_pool(CUmemoryPool handle)
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

static struct pool *add_pool(CUmemoryPool handle, struct gpu *gpu)
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

void pools_note(CUmemoryPool handle, struct gpu *gpu)
{
    pthread_mutex_lock(&lock);
    if (!find_pool(handle))
        add_pool(handle, gpu);
    pthread_mutex_unlock(&lock);
}

struct pool *pools_enter(CUmemoryPool handle, struct gpu *gpu, bool may_add)
{
    struct pool *pool;

    pthread_mutex_lock(&lock);
    pool = find_pool(handle);
    if (!pool && may_add)
        pool = add_pool(handle, gpu);
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

void pool_leave(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->calls--;
    end_if_over(pool);
    pthread_mutex_unlock(&pool->lock);
}

struct gpu *pool_gpu(const struct pool *pool)
{
    return pool->charge.gpu;
}

static uint64_t ask_attribute(CUmemoryPool handle, CUmemPool_attribute attribute)
{
    cuuint64_t value = 0;

    DRIVER(cuMemPoolGetAttribute, handle, attribute, &value);
    return value;
}

static uint64_t add_or_most(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/*
 * By how much a pool with so much reserved can grow until those that are under way, and one of
 * @bytes, have been served. All of them count as not yet served. Under the pool's lock.
 */
static uint64_t growth_of(const struct pool *pool, CUmemoryPool handle, uint64_t reserved,
                          uint64_t bytes)
{
    uint64_t wanted = add_or_most(pool->under_way, bytes);
    uint64_t used = wanted ? ask_attribute(handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) : 0;
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
    reserved = ask_attribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    most = add_or_most(reserved, growth_of(pool, handle, reserved, 0));
    if (pool->charge.bytes > most)
        return charge_resize(&pool->charge, most);
    return pool->charge.bytes >= reserved || charge_resize(&pool->charge, reserved);
}

/* Not what those that are under way count on. Under the pool's lock. */
static void trim_locked(struct pool *pool)
{
    CUmemoryPool handle = pool->handle;
    uint64_t keep = 0;

    if (!handle)
        return;
    if (pool->under_way)
        keep =
            add_or_most(ask_attribute(handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), pool->under_way);
    if (DRIVER(cuMemPoolTrimTo, handle, keep) == CUDA_SUCCESS)
        settle_locked(pool);
}

void pool_trim(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    trim_locked(pool);
    pthread_mutex_unlock(&pool->lock);
}

/*
 * What has to be reserved before one of @bytes is under way. A pool that was destroyed meanwhile
 * cannot be asked. Under the pool's lock.
 */
static uint64_t missing_bytes(const struct pool *pool, CUmemoryPool handle, uint64_t bytes)
{
    uint64_t reserved, needed;

    if (!pool->charge.gpu)
        return 0;
    if (pool->handle != handle)
        return bytes;
    reserved = ask_attribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    needed = add_or_most(reserved, growth_of(pool, handle, reserved, bytes));
    return needed > pool->charge.bytes ? needed - pool->charge.bytes : 0;
}

bool pool_begin(struct pool *pool, CUmemoryPool handle, uint64_t bytes, const struct charge *ahead,
                uint64_t *wanted)
{
    bool is_enough;
    uint64_t now;

    pthread_mutex_lock(&pool->lock);
    now = missing_bytes(pool, handle, bytes);
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

bool pool_is_busy(struct pool *pool, uint64_t *served)
{
    bool are;

    pthread_mutex_lock(&pool->lock);
    are = pool->under_way || pool->served != *served;
    *served = pool->served;
    pthread_mutex_unlock(&pool->lock);
    return are;
}

bool pool_end(struct pool *pool, uint64_t bytes, unsigned int pointers)
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

void pool_drop(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->pointers--;
    end_if_over(pool);
    pthread_mutex_unlock(&pool->lock);
}

bool pools_find(CUmemoryPool handle, struct gpu **gpu)
{
    const struct pool *pool;

    pthread_mutex_lock(&lock);
    pool = find_pool(handle);
    *gpu = pool ? pool->charge.gpu : NULL;
    pthread_mutex_unlock(&lock);
    return pool;
}

static struct pool *first_pool(void)
{
    struct pool *pool;

    pthread_mutex_lock(&lock);
    pool = pools;
    pthread_mutex_unlock(&lock);
    return pool;
}

void pools_settle(void)
{
    for (struct pool *pool = first_pool(); pool; pool = pool->next) {
        pthread_mutex_lock(&pool->lock);
        settle_locked(pool);
        pthread_mutex_unlock(&pool->lock);
    }
}

bool pool_withdraw(struct pool *pool, CUmemoryPool handle)
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

void pool_restore(struct pool *pool, CUmemoryPool handle)
{
    pthread_mutex_lock(&lock);
    if (!find_pool(handle))
        pool->handle = handle;
    pthread_mutex_unlock(&lock);
}

bool pools_trim(struct gpu *gpu)
{
    uint64_t before = atomic_load(&gpu->charged);

    for (struct pool *pool = first_pool(); pool; pool = pool->next) {
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
