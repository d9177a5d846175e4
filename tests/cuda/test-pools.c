// SPDX-License-Identifier: MIT
/* Pools are charged for what they keep, and give it back at the limit. */
#include "fake.h"
#include "kit.h"

#include <unistd.h>

#define LIMIT (128 * MIB)

static void both(uint64_t bytes)
{
    kit_charged(bytes);
    g_assert_cmpuint(kit_on_card(), ==, bytes);
}

static void pools(void)
{
    CUmemPoolProps property = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUdeviceptr a, b, c, never;
    CUmemoryPool own;

    kit_context();
    ok(cuMemAllocAsync(&a, 10 * MIB, NULL));
    both(32 * MIB);
    ok(cuMemAllocAsync_ptsz(&b, 20 * MIB, NULL));
    both(32 * MIB);
    ok(cuMemAllocAsync(&c, 40 * MIB, NULL));
    both(96 * MIB);
    /* What the pool doesn't need was given back for it, in vain. */
    full(cuMemAllocAsync(&never, 64 * MIB, NULL));
    both(70 * MIB);
    /* It is the program's that is free, not yet the card's. */
    ok(cuMemFreeAsync(c, NULL));
    both(70 * MIB);
    ok(cuMemPoolCreate(&own, &property));
    ok(cuMemAllocFromPoolAsync(&c, 30 * MIB, own, NULL));
    both(102 * MIB);
    ok(cuMemFreeAsync_ptsz(c, NULL));
    /* Both pools are trimmed for it: 32 MiB are in use. */
    ok(cuMemAlloc_v2(&c, 80 * MIB));
    both(110 * MIB);
    full(cuMemAlloc_v2(&never, 20 * MIB));
    ok(cuMemFree_v2(c));
    ok(cuMemAllocFromPoolAsync_ptsz(&c, 30 * MIB, own, NULL));
    both(62 * MIB);
    ok(cuMemFreeAsync(c, NULL));
    ok(cuMemPoolDestroy(own));
    both(30 * MIB);
    ok(cuMemFreeAsync(a, NULL));
    ok(cuMemFreeAsync(b, NULL));
    ok(cuCtxSynchronize());
    ok(cuMemAllocAsync(&a, 1, NULL));
    both(32 * MIB);
    ok(cuMemFreeAsync(a, NULL));
    g_assert_cmpuint(kit_peak(), <=, LIMIT);
}

static void test_pools(void)
{
    kit_open(LIMIT);
    kit_run(pools);
    kit_close();
}

/* Near the limit a pool that can grow by less has what is left. */
static void near(void)
{
    CUdeviceptr a, b, never;

    kit_context();
    ok(cuMemAlloc_v2(&a, 120 * MIB));
    ok(cuMemAllocAsync(&b, 6 * MIB, NULL));
    both(126 * MIB);
    full(cuMemAllocAsync(&never, 3 * MIB, NULL));
    both(126 * MIB);
}

static void test_near_the_limit(void)
{
    kit_open(LIMIT);
    g_setenv("FAKE_CUDA_SMALL_STEPS", "1", TRUE);
    kit_run(near);
    kit_close();
}

/* Unused memory of a pool is no reserve any more if the pool was trimmed to make room for it. */
static void trimmed(void)
{
    CUdeviceptr a, b, never;

    kit_context();
    ok(cuMemAllocAsync(&a, 96 * MIB, NULL));
    ok(cuMemFreeAsync(a, NULL));
    ok(cuMemAlloc_v2(&b, 32 * MIB));
    both(128 * MIB);
    full(cuMemAllocAsync(&never, 110 * MIB, NULL));
    both(32 * MIB);
    g_assert_cmpuint(kit_peak(), <=, LIMIT);
}

static void test_trimmed(void)
{
    kit_open(LIMIT);
    kit_run(trimmed);
    kit_close();
}

/* A driver that takes a whole step where less was reserved for it: it has to go again. */
static void over(void)
{
    CUdeviceptr a, never;

    kit_context();
    ok(cuMemAlloc_v2(&a, 120 * MIB));
    full(cuMemAllocAsync(&never, 6 * MIB, NULL));
    both(120 * MIB);
}

static void test_over_the_limit(void)
{
    kit_open(LIMIT);
    kit_run(over);
    kit_close();
}

static void of_other_device(void)
{
    CUdeviceptr a, never;
    CUmemoryPool pool;

    kit_context();
    ok(cuDeviceGetDefaultMemPool(&pool, 1));
    ok(cuMemAllocFromPoolAsync(&a, 10 * MIB, pool, NULL));
    kit_charged_b(32 * MIB);
    kit_charged(0);
    full(cuMemAllocFromPoolAsync_ptsz(&never, 60 * MIB, pool, NULL));
    ok(cuMemFreeAsync(a, NULL));
    ok(cuMemPoolTrimTo(pool, 0));
    kit_charged_b(0);
}

/* The thread has the first device's context. */
static void of_other_stream(void)
{
    CUcontext first, second, current = NULL;
    CUdeviceptr a, never;

    first = kit_context();
    ok(cuCtxCreate_v2(&second, 0, 1));
    ok(cuCtxSetCurrent(first));
    ok(cuMemAllocAsync(&a, 10 * MIB, FAKE_OF_SECOND));
    kit_charged_b(32 * MIB);
    kit_charged(0);
    full(cuMemAllocAsync_ptsz(&never, 60 * MIB, FAKE_OF_SECOND));
    ok(cuCtxGetCurrent(&current));
    g_assert_true(current == first);
    full(cuMemAllocAsync(&never, 30 * MIB, NULL));
    ok(cuMemFreeAsync(a, FAKE_OF_SECOND));
    for (unsigned int i = 0; i < 200; i++) {
        ok(cuMemAllocAsync(&a, 60 * MIB, FAKE_OF_SECOND));
        ok(cuMemFreeAsync(a, FAKE_OF_SECOND));
    }
    kit_charged(0);
}

static void test_of_other_stream(void)
{
    kit_open_devices("[slice]\nvram=20971520\n", "[slice]\nvram=67108864\n");
    kit_run(of_other_stream);
    kit_close();
}

static void test_of_other_device(void)
{
    kit_open_devices("[slice]\nvram=20971520\n", "[slice]\nvram=67108864\n");
    kit_run(of_other_device);
    kit_close();
}

/* CUDA 13: a default pool for each kind of memory. Managed memory counts as the GPU's. */
static void by_location(void)
{
    CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST}, nowhere = {0};
    CUmemLocation second = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1};
    CUmemPoolProps property = {.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED};
    CUdeviceptr a, b, c, never;
    CUmemoryPool pool, own;

    kit_context();
    ok(cuMemGetDefaultMemPool(&pool, &nowhere, CU_MEM_ALLOCATION_TYPE_MANAGED));
    ok(cuMemAllocFromPoolAsync(&a, 10 * MIB, pool, NULL));
    both(32 * MIB);
    ok(cuMemPoolCreate(&own, &property));
    ok(cuMemAllocFromPoolAsync(&b, 10 * MIB, own, NULL));
    both(64 * MIB);
    ok(cuMemGetMemPool(&pool, &second, CU_MEM_ALLOCATION_TYPE_PINNED));
    ok(cuMemAllocFromPoolAsync(&c, 10 * MIB, pool, NULL));
    kit_charged_b(32 * MIB);
    /* The host's memory is nobody's. */
    ok(cuMemGetDefaultMemPool(&pool, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    ok(cuMemAllocFromPoolAsync(&c, 2 * LIMIT, pool, NULL));
    property = (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = host};
    ok(cuMemPoolCreate(&own, &property));
    ok(cuMemAllocFromPoolAsync(&c, 2 * LIMIT, own, NULL));
    both(64 * MIB);
    kit_charged_b(32 * MIB);
    /* Of an imported pool nothing new can be had: that is the driver's answer. */
    ok(cuMemPoolImportFromShareableHandle(&pool, NULL, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                          0));
    g_assert_cmpint(cuMemAllocFromPoolAsync(&never, 2 * LIMIT, pool, NULL), ==,
                    CUDA_ERROR_INVALID_VALUE);
    ok(cuMemPoolDestroy(pool));
}

static void test_by_location(void)
{
    kit_open_devices("[slice]\nvram=134217728\n", "[slice]\n");
    kit_run(by_location);
    kit_close();
}

static const CUmemPoolProps on_first = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

/* What is in use of a pool outlives it; what is not goes with it. */
static void outlived(void)
{
    CUdeviceptr a, b, never;
    CUmemoryPool pool;

    kit_context();
    for (unsigned int round = 0; round < 3; round++) {
        ok(cuMemPoolCreate(&pool, &on_first));
        ok(cuMemAllocFromPoolAsync(&a, 60 * MIB, pool, NULL));
        ok(cuMemAllocFromPoolAsync(&b, 40 * MIB, pool, NULL));
        both(128 * MIB);
        ok(cuMemPoolDestroy(pool));
        both(100 * MIB);
        ok(cuMemPoolCreate(&pool, &on_first));
        full(cuMemAllocFromPoolAsync(&never, 30 * MIB, pool, NULL));
        ok(cuMemPoolDestroy(pool));
        both(100 * MIB);
        ok(cuMemFreeAsync(a, NULL));
        both(100 * MIB);
        /* In either way. */
        ok(round ? cuMemFreeAsync(b, NULL) : cuMemFree_v2(b));
        both(0);
    }
    g_assert_cmpuint(kit_peak(), <=, LIMIT);
}

static void test_outlived(void)
{
    kit_open(LIMIT);
    kit_run(outlived);
    kit_close();
}

/* The driver does not destroy a device's own pool, which goes on as before. */
static void not_destroyed(void)
{
    CUmemoryPool pool;
    CUdeviceptr a, b;

    kit_context();
    ok(cuDeviceGetDefaultMemPool(&pool, 0));
    ok(cuMemAllocAsync(&a, 10 * MIB, NULL));
    g_assert_cmpint(cuMemPoolDestroy(pool), ==, CUDA_ERROR_INVALID_VALUE);
    ok(cuMemAllocAsync(&b, 40 * MIB, NULL));
    both(74 * MIB);
    ok(cuMemFreeAsync(a, NULL));
    ok(cuMemFreeAsync(b, NULL));
    ok(cuMemPoolTrimTo(pool, 0));
    both(0);
}

static void test_not_destroyed(void)
{
    kit_open(LIMIT);
    kit_run(not_destroyed);
    kit_close();
}

/* While a thread is in the driver, which has destroyed a pool or is about to trim it, another one
 * does what the first does not expect. */
static _Atomic bool is_in, is_done;
static CUmemoryPool own;
static CUcontext context;

/* At most for a moment, as it may have to wait for this thread. */
static void let_other(void)
{
    is_in = true;
    for (unsigned int i = 0; !is_done && i < 100; i++)
        g_usleep(1000);
}

static void await_in(void)
{
    ok(cuCtxSetCurrent(context));
    while (!is_in)
        g_usleep(100);
}

/* Frees, and then trims all pools at the limit. */
static void *settle_all(void *dptr)
{
    CUdeviceptr never;

    await_in();
    ok(cuMemFreeAsync(*(CUdeviceptr *)dptr, NULL));
    full(cuMemAlloc_v2(&never, 2 * LIMIT));
    is_done = true;
    return NULL;
}

static void destroyed_beside(void)
{
    void (**after)(void) = kit_driver("fake_after_pool_destroy");
    GThread *thread;
    CUdeviceptr a;

    context = kit_context();
    ok(cuMemPoolCreate(&own, &on_first));
    ok(cuMemAllocAsync(&a, 10 * MIB, NULL));
    *after = let_other;
    thread = g_thread_new("settles", settle_all, &a);
    ok(cuMemPoolDestroy(own));
    /* It was not held up meanwhile. */
    g_assert_true(is_done);
    g_thread_join(thread);
    both(0);
}

static void *destroy(void *data)
{
    (void)data;
    await_in();
    ok(cuMemPoolDestroy(own));
    is_done = true;
    return NULL;
}

static void trimmed_beside(void)
{
    void (**before)(void) = kit_driver("fake_before_trim");
    CUdeviceptr a, never;
    GThread *thread;

    context = kit_context();
    ok(cuMemPoolCreate(&own, &on_first));
    ok(cuMemAllocFromPoolAsync(&a, 10 * MIB, own, NULL));
    ok(cuMemFreeAsync(a, NULL));
    *before = let_other;
    thread = g_thread_new("destroys", destroy, NULL);
    full(cuMemAlloc_v2(&never, 2 * LIMIT));
    g_thread_join(thread);
    both(0);
}

static void test_destroyed_beside(void)
{
    kit_open(LIMIT);
    kit_run(destroyed_beside);
    kit_close();
}

static void test_trimmed_beside(void)
{
    kit_open(LIMIT);
    kit_run(trimmed_beside);
    kit_close();
}

/* A thread is in the driver, which has not yet given it memory, or has. */
static _Atomic bool goes_on;
static bool when_done;

static void hold(CUstream stream, bool is_done_there)
{
    if (!stream || is_done_there != when_done)
        return;
    is_in = true;
    while (!goes_on)
        g_usleep(100);
}

static void *allocate_held(void *mib)
{
    CUdeviceptr dptr;

    ok(cuCtxSetCurrent(context));
    ok(cuMemAllocAsync(&dptr, GPOINTER_TO_UINT(mib) * MIB, CU_STREAM_PER_THREAD));
    return NULL;
}

static GThread *start_held(unsigned int mib)
{
    void (**around)(CUstream, bool) = kit_driver("fake_around_pooled");
    GThread *thread;

    *around = hold;
    thread = g_thread_new("held", allocate_held, GUINT_TO_POINTER(mib));
    await_in();
    return thread;
}

/* What it will take stays charged, whatever becomes of the pool meanwhile. */
static void under_way(void)
{
    CUdeviceptr a, never;
    CUmemoryPool pool;
    GThread *thread;

    context = kit_context();
    ok(cuDeviceGetDefaultMemPool(&pool, 0));
    /* It would be waited for for ever. */
    alarm(20);
    thread = start_held(60);
    kit_charged(64 * MIB);
    full(cuMemAllocAsync(&never, 70 * MIB, NULL));
    ok(cuMemAllocAsync(&a, 60 * MIB, NULL));
    kit_charged(128 * MIB);
    g_assert_cmpuint(kit_on_card(), ==, 64 * MIB);
    /* The 68 MiB that the pool can still have are not all for this one. */
    full(cuMemAllocAsync(&never, 10 * MIB, NULL));
    ok(cuMemFreeAsync(a, NULL));
    both(64 * MIB);
    ok(cuMemPoolTrimTo(pool, 0));
    kit_charged(64 * MIB);
    g_assert_cmpuint(kit_on_card(), ==, 0);
    full(cuMemAlloc_v2(&never, 70 * MIB));
    goes_on = true;
    g_thread_join(thread);
    both(64 * MIB);
    g_assert_cmpuint(kit_peak(), <=, LIMIT);
}

static void test_under_way(void)
{
    kit_open(LIMIT);
    kit_run(under_way);
    kit_close();
}

static void let_go_on(void)
{
    goes_on = true;
}

/* At the limit it is waited for: nobody knows whether it has its memory yet. */
static void nearly_done(void)
{
    void (**before)(void) = kit_driver("fake_before_trim");
    GThread *thread;
    CUdeviceptr a;

    context = kit_context();
    ok(cuMemAllocAsync(&a, 128 * MIB, NULL));
    ok(cuMemFreeAsync(a, NULL));
    both(128 * MIB);
    when_done = true;
    thread = start_held(100);
    *before = let_go_on;
    ok(cuMemAllocAsync(&a, 28 * MIB, NULL));
    g_thread_join(thread);
    both(128 * MIB);
    g_assert_cmpuint(kit_peak(), <=, LIMIT);
}

static void test_nearly_done(void)
{
    kit_open(LIMIT);
    g_setenv("FAKE_CUDA_SMALL_STEPS", "1", TRUE);
    kit_run(nearly_done);
    kit_close();
}

/* The slice may have more than the card has. */
static void refused(void)
{
    CUdeviceptr a, never;

    kit_context();
    full(cuMemAllocAsync(&never, 10000 * MIB, NULL));
    both(0);
    ok(cuMemAllocAsync(&a, 10 * MIB, NULL));
    both(32 * MIB);
    full(cuMemAllocAsync(&never, 10000 * MIB, NULL));
    both(32 * MIB);
}

static void test_refused(void)
{
    kit_open(16384 * MIB);
    kit_run(refused);
    kit_close();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pools/pools", test_pools);
    g_test_add_func("/pools/near-the-limit", test_near_the_limit);
    g_test_add_func("/pools/trimmed", test_trimmed);
    g_test_add_func("/pools/over-the-limit", test_over_the_limit);
    g_test_add_func("/pools/of-other-device", test_of_other_device);
    g_test_add_func("/pools/of-other-stream", test_of_other_stream);
    g_test_add_func("/pools/by-location", test_by_location);
    g_test_add_func("/pools/under-way", test_under_way);
    g_test_add_func("/pools/nearly-done", test_nearly_done);
    g_test_add_func("/pools/refused", test_refused);
    g_test_add_func("/pools/outlived", test_outlived);
    g_test_add_func("/pools/not-destroyed", test_not_destroyed);
    g_test_add_func("/pools/destroyed-beside", test_destroyed_beside);
    g_test_add_func("/pools/trimmed-beside", test_trimmed_beside);
    return g_test_run();
}
