// SPDX-License-Identifier: MIT
/* Threads of one process use all kinds of memory at once, at the limit; and launch at once. */
#include "kit.h"

#define THREADS 6
#define ROUNDS  60
#define LIMIT   (96 * MIB)

static CUcontext context;

static void one_alloc(unsigned int size)
{
    CUdeviceptr dptr;

    if (cuMemAlloc_v2(&dptr, size) == CUDA_SUCCESS)
        ok(cuMemFree_v2(dptr));
}

static void one_pooled(unsigned int size)
{
    CUdeviceptr dptr;

    if (cuMemAllocAsync(&dptr, size, NULL) == CUDA_SUCCESS)
        ok(cuMemFreeAsync(dptr, NULL));
}

/* Which the pool does not outlive. */
static void one_of_own_pool(unsigned int size)
{
    CUmemPoolProps property = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUdeviceptr dptr = 0;
    CUmemoryPool pool;
    CUresult result;

    ok(cuMemPoolCreate(&pool, &property));
    result = cuMemAllocFromPoolAsync(&dptr, size, pool, NULL);
    ok(cuMemPoolDestroy(pool));
    if (result == CUDA_SUCCESS)
        ok(size % 2 ? cuMemFreeAsync(dptr, NULL) : cuMemFree_v2(dptr));
}

static void one_array(unsigned int size)
{
    CUDA_ARRAY_DESCRIPTOR of = {.Width = 1024,
                                .Height = size / 1024 + 1,
                                .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                .NumChannels = 1};
    CUarray array;

    if (cuArrayCreate_v2(&array, &of) == CUDA_SUCCESS)
        ok(cuArrayDestroy(array));
}

static void one_physical(unsigned int size)
{
    CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    size_t bytes = (size / (2 * MIB) + 1) * 2 * MIB;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;

    ok(cuMemAddressReserve(&at, bytes, 0, 0, 0));
    if (cuMemCreate(&handle, bytes, &property, 0) != CUDA_SUCCESS)
        return;
    ok(cuMemMap(at, bytes, 0, handle, 0));
    ok(cuMemRelease(handle));
    ok(cuMemUnmap(at, bytes));
}

static void one_graph(unsigned int size)
{
    CUDA_MEM_ALLOC_NODE_PARAMS of = {.bytesize = size + 1};
    CUgraphExec exec;
    CUgraphNode node;
    CUgraph graph;

    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &of));
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    cuGraphLaunch(exec, NULL);
    ok(cuGraphExecDestroy(exec));
}

static void *work(void *data)
{
    static void (*const kinds[])(unsigned int) = {one_alloc, one_pooled,   one_of_own_pool,
                                                  one_array, one_physical, one_graph};
    unsigned int number = GPOINTER_TO_UINT(data), seed = number;

    ok(cuCtxSetCurrent(context));
    for (unsigned int i = 0; i < ROUNDS; i++) {
        size_t free, total;

        seed = seed * 1103515245u + 12345u;
        kinds[(i + number) % G_N_ELEMENTS(kinds)]((seed >> 8) % (24 * MIB) + 1);
        ok(cuMemGetInfo_v2(&free, &total));
        g_assert_cmpuint(free, <=, LIMIT);
    }
    return NULL;
}

static void program(void)
{
    GThread *threads[THREADS];

    context = kit_context();
    for (unsigned int i = 0; i < THREADS; i++)
        threads[i] = g_thread_new("work", work, GUINT_TO_POINTER(i));
    for (unsigned int i = 0; i < THREADS; i++)
        g_thread_join(threads[i]);
    g_assert_cmpuint(kit_peak(), <=, LIMIT);
    ok(cuDeviceGraphMemTrim(0));
    ok(cuCtxSynchronize());
    one_alloc(LIMIT);
    one_pooled(1);
    ok(cuCtxSynchronize());
    one_pooled(1);
    kit_charged(1);
}

/* Steps that are larger than what was reserved for them are beyond the limit until they are undone.
 */
static void test_threads(void)
{
    kit_open(LIMIT);
    g_setenv("FAKE_CUDA_SMALL_STEPS", "1", TRUE);
    kit_run(program);
    kit_close();
}

#define HELD 4

/* Each has some of the pool's memory at most times. */
static void *share(void *data)
{
    unsigned int seed = GPOINTER_TO_UINT(data);
    CUdeviceptr held[HELD] = {0};

    ok(cuCtxSetCurrent(context));
    for (unsigned int i = 0; i < 4 * ROUNDS; i++) {
        CUdeviceptr *at = &held[i % HELD];

        if (*at)
            ok(cuMemFreeAsync(*at, NULL));
        seed = seed * 1103515245u + 12345u;
        if (cuMemAllocAsync(at, (seed >> 8) % (12 * MIB) + 1, NULL) != CUDA_SUCCESS)
            *at = 0;
        if (i % 11 == 0)
            ok(cuCtxSynchronize());
    }
    for (unsigned int i = 0; i < HELD; i++)
        if (held[i])
            ok(cuMemFreeAsync(held[i], NULL));
    return NULL;
}

static void pools(void)
{
    GThread *threads[THREADS];
    CUdeviceptr all;

    context = kit_context();
    for (unsigned int i = 0; i < THREADS; i++)
        threads[i] = g_thread_new("share", share, GUINT_TO_POINTER(i));
    for (unsigned int i = 0; i < THREADS; i++)
        g_thread_join(threads[i]);
    g_assert_cmpuint(kit_peak(), <=, LIMIT);
    g_assert_cmpuint(kit_peak(), >, LIMIT * 9 / 10);
    /* Nothing is left of it. */
    ok(cuMemAlloc_v2(&all, LIMIT));
    kit_charged(LIMIT);
    g_assert_cmpuint(kit_on_card(), ==, LIMIT);
}

static void test_pools(void)
{
    kit_open(LIMIT);
    g_setenv("FAKE_CUDA_SMALL_STEPS", "1", TRUE);
    kit_run(pools);
    kit_close();
}

/* Launches, copies and what ends batches, on streams of the threads' own and on common ones. */
static void *launch(void *data)
{
    unsigned int number = GPOINTER_TO_UINT(data);

    ok(cuCtxSetCurrent(context));
    for (unsigned int i = 0; i < ROUNDS; i++) {
        CUstream stream = (CUstream)(uintptr_t)(0x100 + 0x10 * (i % 3 ? number : 9));

        kit_launch(kit_kernel(1000 * (1 + i % 5)), stream);
        ok(cuMemcpyHtoDAsync_v2(0, NULL, i % 4 ? 4096 : 2 * MIB, stream));
        if (i % 7 == 0)
            ok(cuStreamSynchronize(stream));
        if (i % 10 == number)
            ok(cuCtxSynchronize());
        if (i % 20 == 0 && i % 3)
            ok(cuStreamDestroy_v2(stream));
    }
    return NULL;
}

static void launches(void)
{
    GThread *threads[THREADS];

    kit_enter("a");
    ok(cuCtxGetCurrent(&context));
    for (unsigned int i = 0; i < THREADS; i++)
        threads[i] = g_thread_new("launch", launch, GUINT_TO_POINTER(i));
    for (unsigned int i = 0; i < THREADS; i++)
        g_thread_join(threads[i]);
    ok(cuCtxDestroy_v2(context));
}

/* Measured from the first launch on, and never. */
static void test_launches(void)
{
    static const char *const slices[] = {"[slice]\ncap=90\nhard=true\n", "[slice]\n"};

    for (unsigned int i = 0; i < G_N_ELEMENTS(slices); i++) {
        kit_open_two(slices[i], "[slice]\n");
        kit_run(launches);
        kit_close();
    }
}

/* Whoever releases the primary context last ends it, while another may make it again. */
static void *use_primary(void *data)
{
    unsigned int number = GPOINTER_TO_UINT(data);

    for (unsigned int i = 0; i < 4 * ROUNDS; i++) {
        CUcontext own;

        ok(cuDevicePrimaryCtxRetain(&own, 0));
        ok(cuCtxSetCurrent(own));
        for (unsigned int k = 0; k < 10; k++)
            kit_launch(kit_kernel(1000 + number), NULL);
        ok(cuDevicePrimaryCtxRelease_v2(0));
        if (i % 4 == number)
            g_usleep(100);
    }
    return NULL;
}

static void primary(void)
{
    GThread *threads[3];

    kit_enter("a");
    for (unsigned int i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = g_thread_new("primary", use_primary, GUINT_TO_POINTER(i));
    for (unsigned int i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
}

static void test_primary(void)
{
    static const char *const slices[] = {"[slice]\ncap=90\nhard=true\n", "[slice]\n"};

    for (unsigned int i = 0; i < G_N_ELEMENTS(slices); i++) {
        kit_open_two(slices[i], "[slice]\n");
        kit_run(primary);
        kit_close();
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/threads/memory", test_threads);
    g_test_add_func("/threads/pools", test_pools);
    g_test_add_func("/threads/launches", test_launches);
    g_test_add_func("/threads/primary", test_primary);
    return g_test_run();
}
