// SPDX-License-Identifier: MIT
/*
 * Programs in a slice of a fake card whose kernels compute (fake-cuda/ptx/content.h): PTX written
 * for these tests is loaded, launched and checked through the door; what is wrong is an error of
 * CUDA's, and no crash.
 */
#include "compute_ptx.h"
#include "kit.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT           (64 * MIB)
#define COUNT           4096u
#define BAD_PTX         218
#define NO_BINARY       209
#define BAD_IMAGE       200
#define ILLEGAL_ADDRESS 700
#define TOO_LONG        702

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name);
CUresult cuFuncGetParamInfo(CUfunction function, size_t at, size_t *offset, size_t *bytes);
CUresult cuMemsetD32Async(CUdeviceptr at, unsigned int value, size_t count, CUstream stream);

static CUfunction load(CUmodule *module, const char *name)
{
    CUfunction function;

    ok(cuModuleLoadData(module, compute_ptx));
    ok(cuModuleGetFunction(&function, *module, name));
    return function;
}

static CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr at;

    ok(cuMemAlloc_v2(&at, bytes));
    return at;
}

static CUresult launch_count(CUfunction count, CUdeviceptr at, CUstream stream)
{
    void *parameters[] = {&at};

    return cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

static unsigned int read_word(CUdeviceptr at)
{
    unsigned int word = 0;

    ok(cuMemcpyDtoH_v2(&word, at, sizeof(word)));
    return word;
}

/* Through a copy there, a kernel and a copy back. */
static void compute(void)
{
    static float x[COUNT], z[COUNT];
    unsigned int n = COUNT - 3, seven = 7;
    float a = 0.5f;
    CUdeviceptr to, from, scale;
    size_t bytes, offset;
    CUfunction axpy;
    CUmodule module;

    kit_context();
    axpy = load(&module, "axpy");
    to = allocate(sizeof(z));
    from = allocate(sizeof(x));
    for (unsigned int i = 0; i < COUNT; i++)
        x[i] = (float)i;
    ok(cuModuleGetGlobal_v2(&scale, &bytes, module, "scale"));
    g_assert_cmpuint(bytes, ==, 4);
    g_assert_cmpuint(read_word(scale), ==, 3);
    ok(cuMemcpyHtoD_v2(scale, &seven, sizeof(seven)));
    ok(cuMemsetD8_v2(to, 0, sizeof(z)));
    ok(cuMemcpyHtoD_v2(from, x, sizeof(x)));
    ok(cuLaunchKernel(axpy, COUNT / 256, 1, 1, 256, 1, 1, 0, NULL, (void *[]){&to, &from, &n, &a},
                      NULL));
    ok(cuMemcpyDtoH_v2(z, to, sizeof(z)));
    for (unsigned int i = 0; i < COUNT; i++)
        g_assert_true(z[i] == (i < n ? x[i] * 0.5f + 7 : 0));
    ok(cuFuncGetParamInfo(axpy, 3, &offset, &bytes));
    g_assert_cmpuint(offset, ==, 20);
    g_assert_cmpuint(bytes, ==, 4);
    g_assert_cmpint(cuFuncGetParamInfo(axpy, 4, &offset, &bytes), !=, CUDA_SUCCESS);
    ok(cuModuleUnload(module));
}

static void open_content(void)
{
    g_setenv("FAKE_CUDA_CONTENT", "1", TRUE);
    kit_open(LIMIT);
}

static void close_content(void)
{
    kit_close();
    g_unsetenv("FAKE_CUDA_CONTENT");
    g_unsetenv("FAKE_CUDA_STEPS");
}

static void test_compute(void)
{
    open_content();
    kit_run(compute);
    kit_charged(0);
    close_content();
}

/* The limit holds for memory with content. */
static void fill(void)
{
    CUdeviceptr at, more;

    kit_context();
    at = allocate(LIMIT - MIB);
    full(cuMemAlloc_v2(&more, 4 * MIB));
    ok(cuMemsetD8_v2(at, 7, LIMIT - MIB));
    g_assert_cmphex(read_word(at + LIMIT - MIB - 4), ==, 0x07070707);
}

static void test_limit(void)
{
    open_content();
    kit_run(fill);
    close_content();
}

/* What is captured is computed by each launch of the graph, and not before. */
static void capture(void)
{
    CUfunction count;
    CUmodule module;
    CUgraphExec exec;
    CUstream stream;
    CUgraph graph;
    CUdeviceptr at;

    kit_context();
    count = load(&module, "count");
    at = allocate(4096);
    ok(cuMemsetD8_v2(at, 0, 4096));
    ok(cuStreamCreate(&stream, 1));
    ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ok(launch_count(count, at, stream));
    ok(launch_count(count, at, stream));
    ok(cuStreamEndCapture(stream, &graph));
    g_assert_cmpuint(read_word(at), ==, 0);
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 3; i++)
        ok(cuGraphLaunch(exec, stream));
    ok(cuStreamSynchronize(stream));
    g_assert_cmpuint(read_word(at), ==, 6);
}

/* The first parameters of CUDA_KERNEL_NODE_PARAMS. */
struct node {
    CUfunction function;
    unsigned int grid[3], block[3], shared;
    void **parameters, **extra;
};

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                 size_t count, const void *parameters);

/* A node of a kernel, whose parameters are those of when it was made; a launch with a buffer. */
static void add_node(void)
{
    struct node of = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    CUdeviceptr at, other;
    size_t bytes = sizeof(at);
    CUgraphNode node;
    CUmodule module;
    CUgraphExec exec;
    CUgraph graph;

    kit_context();
    of.function = load(&module, "count");
    of.parameters = (void *[]){&other};
    other = at = allocate(4096);
    ok(cuMemsetD8_v2(at, 0, 4096));
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &of));
    other = 0;
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ok(cuGraphLaunch(exec, NULL));
    ok(cuGraphLaunch(exec, NULL));
    g_assert_cmpuint(read_word(at), ==, 2);
    ok(cuLaunchKernel(of.function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL,
                      (void *[]){(void *)1, &at, (void *)2, &bytes, NULL}));
    g_assert_cmpuint(read_word(at), ==, 3);
}

static void test_capture(void)
{
    open_content();
    kit_run(capture);
    kit_run(add_node);
    close_content();
}

static unsigned int *seen_by_host;

static void note_on_host(void *data)
{
    g_usleep(20000);
    *seen_by_host = *(unsigned int *)data * 10;
}

/* A kernel behind a function of the host, on memory of the host. */
static void wait_for_host(void)
{
    CUresult (*launch_function)(CUstream, void *, void *) = NULL;
    unsigned int *words;
    CUfunction count;
    CUstream stream;
    CUmodule module;
    CUdeviceptr at;

    kit_context();
    count = load(&module, "count");
    ok(cuMemAllocManaged(&at, 4096, 1));
    words = (unsigned int *)(uintptr_t)at;
    seen_by_host = words;
    ok(cuStreamCreate(&stream, 1));
    ok(launch_count(count, at, stream));
    *(void **)&launch_function = kit_driver("cuLaunchHostFunc");
    ok(launch_function(stream, (void *)note_on_host, words));
    ok(launch_count(count, at, stream));
    ok(cuStreamSynchronize(stream));
    g_assert_cmpuint(*words, ==, 11);
}

static void test_host(void)
{
    open_content();
    kit_run(wait_for_host);
    close_content();
}

static void load_wrong(void)
{
    unsigned char container[80] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 64};
    CUfunction function;
    CUmodule module;

    kit_context();
    g_assert_cmpint(cuModuleLoadData(&module, ".version 8.0\n.entry k() { nonsense; }"), ==,
                    BAD_PTX);
    g_assert_cmpint(cuModuleLoadData(&module, "something else"), ==, BAD_IMAGE);
    g_assert_cmpint(cuModuleLoadData(&module, container), ==, NO_BINARY);
    g_assert_cmpint(cuModuleLoadData(&module, ""), ==, BAD_IMAGE);
    /* The number of older tests. */
    ok(cuModuleLoadData(&module, "4096"));
    ok(cuModuleLoadData(&module, compute_ptx));
    g_assert_cmpint(cuModuleGetFunction(&function, module, "missing"), ==, CUDA_ERROR_NOT_FOUND);
    ok(cuModuleGetFunction(&function, module, "count"));
    g_assert_cmpint(launch_count(function, 0, NULL), ==, CUDA_SUCCESS);
    g_assert_cmpint(cuStreamSynchronize(NULL), ==, ILLEGAL_ADDRESS);
}

/* A launch that cannot be: the call says so, and nothing else ends. */
static void launch_wrong(void)
{
    CUfunction function;
    CUmodule module;
    CUdeviceptr at;

    kit_context();
    function = load(&module, "count");
    at = allocate(4096);
    g_assert_cmpint(cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, NULL, (void *[]){&at}, NULL),
                    ==, CUDA_ERROR_INVALID_VALUE);
    g_assert_cmpint(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), ==,
                    CUDA_ERROR_INVALID_VALUE);
    /* After what was freed, too. */
    ok(cuMemFree_v2(at));
    ok(launch_count(function, at, NULL));
    g_assert_cmpint(cuStreamSynchronize(NULL), ==, ILLEGAL_ADDRESS);
}

static void run_forever(void)
{
    CUfunction function;
    CUmodule module;

    kit_context();
    function = load(&module, "forever");
    ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    g_assert_cmpint(cuStreamSynchronize(NULL), ==, TOO_LONG);
}

static void test_wrong(void)
{
    open_content();
    g_setenv("FAKE_CUDA_STEPS", "1000000", TRUE);
    kit_run(load_wrong);
    kit_run(launch_wrong);
    kit_run(run_forever);
    close_content();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/compute/compute", test_compute);
    g_test_add_func("/compute/limit", test_limit);
    g_test_add_func("/compute/capture", test_capture);
    g_test_add_func("/compute/host", test_host);
    g_test_add_func("/compute/wrong", test_wrong);
    return g_test_run();
}
