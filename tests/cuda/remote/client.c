// SPDX-License-Identifier: MIT
/*
 * client CASE: a program of CUDA's that knows nothing of where its driver is. It checks what it
 * computes, and says what is wrong.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../compute_ptx.h"
#include "cuda_abi.h"

#define COUNT   4096u
#define MIB     (1ull << 20)
#define THREADS 16
#define ROUNDS  100

CUresult cuInit(unsigned int flags);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetName(char *name, int bytes, CUdevice device);
CUresult cuDriverGetVersion(int *version);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSynchronize(void);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr at);
CUresult cuMemGetInfo_v2(size_t *left, size_t *total);
CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned int flags);
CUresult cuMemFreeHost(void *at);
CUresult cuMemsetD8_v2(CUdeviceptr at, unsigned char value, size_t count);
CUresult cuMemsetD32Async(CUdeviceptr at, unsigned int value, size_t count, CUstream stream);
CUresult cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned int flags);
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy);
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream);
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy);
CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, void *parameters);
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, void *result);
CUresult cuGraphCreate(CUgraph *graph, unsigned int flags);
CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                             size_t count);
CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                              size_t count, const void *parameters, CUcontext context);
CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, void *operations,
                               unsigned int flags);
CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                              size_t count, const void *parameters);
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, void *parameters);
CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const void *parameters);
CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                            size_t count, const void *parameters);
CUresult cuGraphHostNodeGetParams(CUgraphNode node, void *parameters);
CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                              size_t count, const CUDA_MEMCPY3D *copy, CUcontext context);
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, unsigned int *status, uint64_t *id,
                                   CUgraph *graph, const CUgraphNode **nodes, size_t *count);
CUresult cuTexObjectCreate(unsigned long long *texture, const void *resource,
                           const void *texture_of, const void *view);
CUresult cuTexObjectDestroy(unsigned long long texture);
CUresult cuPointerGetAttribute(void *data, unsigned int attribute, CUdeviceptr at);
CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                            unsigned int *options, void **values);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name);
CUresult cuFuncGetName(const char **name, CUfunction function);
CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                        unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                        CUstream stream, void **parameters, void **extra);
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int gx, unsigned int gy,
                                   unsigned int gz, unsigned int bx, unsigned int by,
                                   unsigned int bz, unsigned int shared, CUstream stream,
                                   void **parameters);
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                          void **extra);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data);
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void *data,
                             unsigned int flags);
CUresult cuGetErrorName(CUresult error, const char **name);
CUresult cuGetProcAddress_v2(const char *name, void **to, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status);
CUresult cuStreamBeginCapture_v2(CUstream stream, unsigned int mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphExecDestroy(CUgraphExec exec);
CUresult cuGraphNodeGetType(CUgraphNode node, unsigned int *type);

static char text_of_many[8192];

static void check(CUresult result, CUresult wanted, int line, const char *what)
{
    const char *name = NULL;

    if (result == wanted)
        return;
    cuGetErrorName(result, &name);
    fprintf(stderr, "line %d: %s: %d %s, not %d\n", line, what, (int)result, name ? name : "",
            (int)wanted);
    exit(1);
}

#define is(call, wanted) check(call, (CUresult)(wanted), __LINE__, #call)
#define ok(call)         is(call, CUDA_SUCCESS)
#define must(condition)  ((condition) ? (void)0 : check(1, 0, __LINE__, #condition))

static CUcontext begin(void)
{
    CUcontext context;
    CUdevice device;

    ok(cuInit(0));
    ok(cuDeviceGet(&device, 0));
    ok(cuCtxCreate_v2(&context, 0, device));
    return context;
}

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

static unsigned int read_word(CUdeviceptr at)
{
    unsigned int word;

    ok(cuMemcpyDtoH_v2(&word, at, sizeof(word)));
    return word;
}

/* A copy there, a kernel in each way that it can be launched, a copy back. */
static void compute(void)
{
    static float x[COUNT], z[COUNT];
    unsigned int n = COUNT - 3, seven = 7;
    float a = 0.5f;
    CUdeviceptr to, from, scale;
    void *parameters[] = {&to, &from, &n, &a};
    CUlaunchConfig config = {COUNT / 256, 1, 1, 256, 1, 1, 0, NULL, NULL, 0};
    struct {
        CUdeviceptr to, from;
        unsigned int n;
        float a;
    } packed;
    size_t bytes = sizeof(packed);
    void *extra[] = {(void *)1, &packed, (void *)2, &bytes, NULL};
    CUmodule module;
    CUfunction axpy;

    begin();
    axpy = load(&module, "axpy");
    to = packed.to = allocate(sizeof(z));
    from = packed.from = allocate(sizeof(x));
    packed.n = n;
    packed.a = a;
    for (unsigned int i = 0; i < COUNT; i++)
        x[i] = (float)i;
    ok(cuModuleGetGlobal_v2(&scale, &bytes, module, "scale"));
    must(bytes == 4 && read_word(scale) == 3);
    bytes = sizeof(packed);
    ok(cuMemcpyHtoD_v2(scale, &seven, sizeof(seven)));
    ok(cuMemcpyHtoD_v2(from, x, sizeof(x)));
    for (unsigned int way = 0; way < 4; way++) {
        ok(cuMemsetD8_v2(to, 0, sizeof(z)));
        if (way == 0)
            ok(cuLaunchKernel(axpy, COUNT / 256, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
        else if (way == 1)
            ok(cuLaunchKernel(axpy, COUNT / 256, 1, 1, 256, 1, 1, 0, NULL, NULL, extra));
        else if (way == 2)
            ok(cuLaunchKernelEx(&config, axpy, parameters, NULL));
        else
            ok(cuLaunchCooperativeKernel(axpy, COUNT / 256, 1, 1, 256, 1, 1, 0, NULL, parameters));
        ok(cuMemcpyDtoH_v2(z, to, sizeof(z)));
        for (unsigned int i = 0; i < COUNT; i++)
            must(z[i] == (i < n ? x[i] * 0.5f + 7 : 0));
    }
    ok(cuModuleUnload(module));
    is(cuLaunchKernel(axpy, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL),
       CUDA_ERROR_INVALID_HANDLE);
}

/* 64 MiB are the slice's. */
static void limit(void)
{
    CUdeviceptr at, more;
    size_t left, total;

    begin();
    ok(cuMemGetInfo_v2(&left, &total));
    must(total == 64 * MIB && left <= total);
    at = allocate(48 * MIB);
    is(cuMemAlloc_v2(&more, 48 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    ok(cuMemFree_v2(at));
    ok(cuMemFree_v2(allocate(48 * MIB)));
}

/* Larger than any part of a channel, by each kind of copy. */
static void large(void)
{
    const size_t bytes = 24 * MIB + 12345;
    unsigned char *from = malloc(bytes), *to = calloc(1, bytes), *locked;
    CUstream stream;
    CUdeviceptr at;

    begin();
    ok(cuStreamCreate(&stream, 0));
    at = allocate(bytes);
    for (size_t i = 0; i < bytes; i++)
        from[i] = (unsigned char)(i * 7 + i / 4096);
    ok(cuMemcpyHtoD_v2(at, from, bytes));
    ok(cuMemcpyDtoH_v2(to, at, bytes));
    must(!memcmp(from, to, bytes));
    ok(cuMemHostAlloc((void **)&locked, bytes, 0));
    ok(cuMemcpyDtoHAsync_v2(locked, at, bytes, stream));
    ok(cuStreamSynchronize(stream));
    must(!memcmp(from, locked, bytes));
    memset(locked, 5, bytes);
    ok(cuMemcpyHtoDAsync_v2(at, locked, bytes, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuMemcpy((uintptr_t)to, at, bytes));
    must(!memcmp(to, locked, bytes));
    ok(cuMemcpy(at, (uintptr_t)from, bytes));
    ok(cuMemcpy((uintptr_t)locked, at, bytes));
    must(!memcmp(from, locked, bytes));
    ok(cuMemFreeHost(locked));
    is(cuMemFreeHost(locked), CUDA_ERROR_INVALID_VALUE);
    for (unsigned int i = 0; i < 200; i++) {
        ok(cuMemHostAlloc((void **)&locked, 100000 * (1 + i % 7), 0));
        locked[i] = 1;
        ok(cuMemFreeHost(locked));
    }
}

/* What does not exist any more, or never did, is an error and nothing else. */
static void objects(void)
{
    CUcontext context = begin(), current;
    CUstream stream, other;
    CUevent event, late;
    CUdevice device;
    unsigned int type = 0;
    CUdeviceptr at;

    ok(cuCtxGetCurrent(&current));
    must(current == context);
    ok(cuStreamCreate(&stream, 0));
    ok(cuEventCreate(&event, 0));
    ok(cuEventRecord(event, stream));
    ok(cuEventSynchronize(event));
    is(cuEventRecord((CUevent)stream, stream), CUDA_ERROR_INVALID_HANDLE);
    is(cuStreamSynchronize((CUstream)event), CUDA_ERROR_INVALID_HANDLE);
    is(cuStreamSynchronize((CUstream)&device), CUDA_ERROR_INVALID_HANDLE);
    ok(cuStreamDestroy_v2(stream));
    is(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    ok(cuStreamCreate(&other, 0));
    ok(cuStreamSynchronize(other));
    /* What was the context's is gone with it. */
    ok(cuEventCreate(&late, 0));
    ok(cuCtxDestroy_v2(context));
    is(cuEventDestroy_v2(late), CUDA_ERROR_INVALID_HANDLE);
    is(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
    ok(cuDeviceGet(&device, 0));
    ok(cuDevicePrimaryCtxRetain(&context, device));
    ok(cuCtxSetCurrent(context));
    ok(cuEventCreate(&late, 0));
    ok(cuDevicePrimaryCtxRelease_v2(device));
    is(cuEventDestroy_v2(late), CUDA_ERROR_INVALID_HANDLE);
    /* Addresses that are nobody's, or this process's own. */
    begin();
    at = allocate(4096);
    ok(cuPointerGetAttribute(&type, 2, at));
    must(type == 2);
    is(cuMemcpyHtoD_v2(at, text_of_many, sizeof(text_of_many)), CUDA_ERROR_INVALID_VALUE);
    is(cuMemcpyHtoD_v2((uintptr_t)&type, &device, 4), CUDA_ERROR_INVALID_VALUE);
    is(cuMemsetD8_v2(0x7f0000000000, 0, 4096), CUDA_ERROR_INVALID_VALUE);
    is(cuMemsetD8_v2(at, 0, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
}

static void *count_in_thread(void *data)
{
    CUcontext current;
    CUfunction count;
    CUstream stream;
    CUmodule module;
    CUdeviceptr at;
    void *parameters[] = {&at};

    /* A thread begins without a context. */
    ok(cuCtxGetCurrent(&current));
    must(!current);
    ok(cuCtxSetCurrent(data));
    count = load(&module, "count");
    ok(cuStreamCreate(&stream, 0));
    at = allocate(4096);
    ok(cuMemsetD8_v2(at, 0, 4096));
    for (unsigned int i = 0; i < ROUNDS; i++)
        ok(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    ok(cuStreamSynchronize(stream));
    must(read_word(at) == ROUNDS);
    ok(cuMemFree_v2(at));
    ok(cuModuleUnload(module));
    return NULL;
}

/* Twice, so that the second threads have channels that the first ones had. */
static void threads(void)
{
    pthread_t running[THREADS];
    CUcontext context = begin();

    for (unsigned int round = 0; round < 2; round++) {
        for (unsigned int i = 0; i < THREADS; i++)
            must(!pthread_create(&running[i], NULL, count_in_thread, context));
        for (unsigned int i = 0; i < THREADS; i++)
            pthread_join(running[i], NULL);
    }
}

/* A graph that was captured, and its nodes. */
static void graphs(void)
{
    CUgraphNode nodes[4];
    size_t count = 4;
    unsigned int type;
    CUmodule module;
    CUfunction add;
    CUstream stream;
    CUgraphExec exec;
    CUgraph graph;
    CUdeviceptr at;
    void *parameters[] = {&at};

    begin();
    add = load(&module, "count");
    at = allocate(4096);
    ok(cuMemsetD8_v2(at, 0, 4096));
    ok(cuStreamCreate(&stream, 0));
    ok(cuStreamBeginCapture_v2(stream, 2));
    ok(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    ok(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    ok(cuStreamEndCapture(stream, &graph));
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (unsigned int i = 0; i < 5; i++)
        ok(cuGraphLaunch(exec, stream));
    ok(cuStreamSynchronize(stream));
    must(read_word(at) == 10);
    if (cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS && count == 2)
        ok(cuGraphNodeGetType(nodes[0], &type));
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    is(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
}

static _Atomic unsigned int called;

static void count_call(void *data)
{
    CUdeviceptr at;

    is(cuMemAlloc_v2(&at, 4096), 800);
    must(data == text_of_many);
    called++;
}

static void count_stream_call(CUstream stream, CUresult result, void *data)
{
    must(stream && result == CUDA_SUCCESS && data == text_of_many);
    called++;
}

/* The program's functions are called in the stream's order, by each launch of a graph, too. */
static void callbacks(void)
{
    CUstream stream;
    CUgraphExec exec;
    CUgraph graph;

    begin();
    ok(cuStreamCreate(&stream, 0));
    for (unsigned int i = 1; i <= 20; i++) {
        ok(cuLaunchHostFunc(stream, count_call, text_of_many));
        ok(cuStreamAddCallback(stream, count_stream_call, text_of_many, 0));
        if (i % 5)
            continue;
        ok(cuStreamSynchronize(stream));
        must(called == 2 * i);
    }
    ok(cuStreamBeginCapture_v2(stream, 2));
    ok(cuLaunchHostFunc(stream, count_call, text_of_many));
    ok(cuStreamEndCapture(stream, &graph));
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (unsigned int i = 0; i < 3; i++)
        ok(cuGraphLaunch(exec, stream));
    ok(cuStreamSynchronize(stream));
    must(called == 43);
}

/* A thread that waits holds up no other: the driver's function waits here until memory that both
 * have was made and given back. */
static _Atomic bool has_memory;

static void await_memory(void *data)
{
    (void)data;
    while (!has_memory)
        usleep(1000);
}

static void *await_stream(void *stream)
{
    ok(cuStreamSynchronize(stream));
    return NULL;
}

static void waiting(void)
{
    CUstream stream;
    pthread_t other;
    void *at;

    begin();
    ok(cuStreamCreate(&stream, 0));
    ok(cuLaunchHostFunc(stream, await_memory, NULL));
    must(!pthread_create(&other, NULL, await_stream, stream));
    usleep(100000);
    for (unsigned int i = 0; i < 10; i++) {
        ok(cuMemHostAlloc(&at, 100000, 0));
        ok(cuMemFreeHost(at));
    }
    has_memory = true;
    pthread_join(other, NULL);
}

/* What one thread has posted comes before what another does, which knows of it. */
#define TURNS 300

static CUdeviceptr shared_word;
static _Atomic unsigned int written, checked;

static void *check_words(void *context)
{
    ok(cuCtxSetCurrent(context));
    for (unsigned int turn = 1; turn <= TURNS; turn++) {
        while (written < turn)
            sched_yield();
        must(read_word(shared_word) == turn);
        checked = turn;
    }
    return NULL;
}

static void order(void)
{
    CUcontext context = begin();
    CUstream stream;
    pthread_t other;

    ok(cuStreamCreate(&stream, 0));
    shared_word = allocate(MIB);
    must(!pthread_create(&other, NULL, check_words, context));
    for (unsigned int turn = 1; turn <= TURNS; turn++) {
        /* So that the last one is not yet carried out when the other thread hears of it. */
        for (unsigned int i = 0; i < 4; i++)
            ok(cuMemsetD32Async(shared_word + 4096, i, 100000, stream));
        ok(cuMemsetD32Async(shared_word, turn, 1, stream));
        written = turn;
        while (checked < turn)
            sched_yield();
    }
    pthread_join(other, NULL);
}

/* An error of a call that was posted is the next one's, once. */
static void posted(void)
{
    CUstream stream;

    begin();
    ok(cuStreamCreate(&stream, 0));
    ok(cuMemsetD32Async(0x7f0000000000, 0, 4, stream));
    is(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_VALUE);
    ok(cuStreamSynchronize(stream));
}

/* Unless the program wants to have it at once. */
static void blocking(void)
{
    CUstream stream;

    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    begin();
    ok(cuStreamCreate(&stream, 0));
    is(cuMemsetD32Async(0x7f0000000000, 0, 4, stream), CUDA_ERROR_INVALID_VALUE);
    ok(cuStreamSynchronize(stream));
}

/* Memory that the program and a kernel use by one address. */
static void managed(void)
{
    CUdeviceptr at;
    void *parameters[] = {&at};
    CUfunction count;
    CUmodule module;

    begin();
    count = load(&module, "count");
    ok(cuMemAllocManaged(&at, 4096, 1));
    *(unsigned int *)(uintptr_t)at = 41;
    ok(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    ok(cuCtxSynchronize());
    must(*(unsigned int *)(uintptr_t)at == 42);
    ok(cuMemFree_v2(at));
    is(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
}

#define ROWS  5u
#define WIDTH 24u
#define PITCH 64u

static uint8_t byte_of(unsigned int row, unsigned int at)
{
    return (uint8_t)(row * 31 + at + 1);
}

/* Rows with gaps between them, which no copy may touch. */
static void fill_rows(uint8_t *at, uint8_t gap)
{
    memset(at, gap, ROWS * PITCH);
    for (unsigned int y = 0; y < ROWS; y++)
        for (unsigned int x = 0; x < WIDTH; x++)
            at[y * PITCH + x] = byte_of(y, x);
}

/* To the GPU without gaps, and back with others. */
static void move_rows(uint8_t *from, uint8_t *to)
{
    CUdeviceptr on_gpu = allocate(ROWS * WIDTH);
    const CUDA_MEMCPY2D there = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                 .srcHost = from,
                                 .srcPitch = PITCH,
                                 .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .dstDevice = on_gpu,
                                 .WidthInBytes = WIDTH,
                                 .Height = ROWS};
    const CUDA_MEMCPY3D back = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                .srcDevice = on_gpu,
                                .srcY = 1,
                                .srcXInBytes = 4,
                                .srcPitch = WIDTH,
                                .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                                .dstDevice = (uintptr_t)to,
                                .dstPitch = 2ull * PITCH,
                                .dstHeight = 2,
                                .WidthInBytes = WIDTH - 4,
                                .Height = 2,
                                .Depth = 2};

    fill_rows(from, 0);
    memset(to, 0xee, 4ull * 2 * PITCH);
    ok(cuMemcpy2D_v2(&there));
    ok(cuMemcpy3D_v2(&back));
    for (unsigned int y = 0; y < 4; y++)
        for (unsigned int x = 0; x < 2 * PITCH; x++)
            must(to[y * 2 * PITCH + x] == (x < WIDTH - 4 ? byte_of(y + 1, x + 4) : 0xee));
    ok(cuMemFree_v2(on_gpu));
}

/* Of more than is sent at once, so that it goes in parts. */
static void move_many_rows(void)
{
    size_t width = 1000, pitch = 1024, rows = 40000;
    uint8_t *from = calloc(rows, pitch), *to = calloc(rows, pitch);
    CUdeviceptr on_gpu = allocate(rows * pitch);
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = from,
                          .srcPitch = pitch,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = on_gpu,
                          .dstPitch = pitch,
                          .WidthInBytes = width,
                          .Height = rows};
    CUstream stream;

    must(from && to);
    for (size_t i = 0; i < rows * pitch; i++)
        from[i] = (uint8_t)(i * 2654435761u >> 13);
    ok(cuStreamCreate(&stream, 0));
    ok(cuMemcpy2DAsync_v2(&copy, stream));
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = on_gpu;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = to;
    ok(cuMemcpy2DAsync_v2(&copy, stream));
    for (size_t y = 0; y < rows; y++)
        must(!memcmp(from + y * pitch, to + y * pitch, width) && !to[y * pitch + width]);
    ok(cuMemFree_v2(on_gpu));
    on_gpu = allocate(rows * pitch);
    ok(cuMemcpyHtoD_v2(on_gpu, from, rows * pitch));
    ok(cuMemcpyDtoHAsync_v2(to, on_gpu, rows * pitch, stream));
    must(!memcmp(from, to, rows * pitch));
    free(from);
    free(to);
}

/* Memory of the program alone, pinned memory, and what is not there at all. */
static void rows(void)
{
    uint8_t from[ROWS * PITCH], to[8 * PITCH];
    CUDA_MEMCPY2D wrong = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = calloc(1, MIB),
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .WidthInBytes = 1024,
                           .Height = 1024};
    void *pinned;

    begin();
    move_rows(from, to);
    ok(cuMemHostAlloc(&pinned, 2 * sizeof(to), 0));
    move_rows(pinned, (uint8_t *)pinned + sizeof(to));
    move_many_rows();
    wrong.dstDevice = allocate(MIB / 2);
    is(cuMemcpy2D_v2(&wrong), CUDA_ERROR_INVALID_VALUE);
    wrong.dstMemoryType = (CUmemorytype)9;
    wrong.Height = 1;
    is(cuMemcpy2D_v2(&wrong), CUDA_ERROR_INVALID_VALUE);
    is(cuMemcpy2D_v2(NULL), CUDA_ERROR_INVALID_VALUE);
}

/* A graph copies when it is launched: what was only sent is not there any more. */
static void captured_copies(void)
{
    CUdeviceptr at;
    CUstream stream;
    CUgraph graph;
    unsigned int value = 7;
    void *pinned;

    begin();
    at = allocate(4096);
    ok(cuMemHostAlloc(&pinned, 4096, 0));
    ok(cuStreamCreate(&stream, 0));
    ok(cuStreamBeginCapture_v2(stream, 2));
    is(cuMemcpyDtoHAsync_v2(&value, at, sizeof(value), stream), 900);
    ok(cuMemcpyHtoDAsync_v2(at, pinned, 4096, stream));
    ok(cuStreamEndCapture(stream, &graph));
    ok(cuGraphDestroy(graph));
    must(value == 7);
}

/* Structures that hold objects and addresses, laid out as the driver's. */
struct instantiation {
    uint64_t flags;
    CUstream stream;
    CUgraphNode node;
    unsigned int result;
};

struct update {
    unsigned int result;
    CUgraphNode node, from;
};

struct fill_node {
    CUdeviceptr to;
    size_t pitch;
    unsigned int value, element;
    size_t width, rows;
};

struct memory_operation {
    unsigned int operation;
    CUdeviceptr at;
    uint64_t value;
    unsigned int flags;
    uint64_t rest[2];
};

struct resource {
    unsigned int type;
    CUdeviceptr at;
    unsigned int format, channels;
    size_t bytes;
    uint64_t rest[13];
};

static void write_by_operation(CUstream stream)
{
    struct memory_operation operation = {.operation = 2, .value = 4711};
    void *pinned;

    ok(cuMemHostAlloc(&pinned, 4096, 0));
    operation.at = (uintptr_t)pinned + 8;
    ok(cuStreamBatchMemOp_v2(stream, 1, &operation, 0));
    ok(cuStreamSynchronize(stream));
    must(((unsigned int *)pinned)[2] == 4711);
    operation.at = 0x7f0000000000;
    is(cuStreamBatchMemOp_v2(stream, 1, &operation, 0), CUDA_ERROR_INVALID_VALUE);
}

static void update_graph(CUstream stream)
{
    CUdeviceptr at = allocate(4096);
    struct fill_node fill = {
        .to = at, .pitch = 128, .value = 7, .element = 4, .width = 16, .rows = 4096 / 128};
    struct instantiation way = {.stream = stream, .node = (CUgraphNode)0x1234};
    struct update update = {.node = (CUgraphNode)0x1234};
    CUgraph graph, other;
    CUgraphNode node;
    CUgraphExec exec;

    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, NULL));
    fill.rows++;
    is(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, NULL), CUDA_ERROR_INVALID_VALUE);
    ok(cuGraphInstantiateWithParams(&exec, graph, &way));
    must(way.stream == stream && !way.node);
    ok(cuGraphExecUpdate_v2(exec, graph, &update));
    must(!update.result && !update.node);
    ok(cuGraphLaunch(exec, stream));
    ok(cuGraphCreate(&other, 0));
    is(cuGraphExecUpdate_v2(exec, other, &update), 910);
    must(update.result == 2 && !update.node);
    ok(cuGraphAddEmptyNode(&node, other, NULL, 0));
    is(cuGraphExecUpdate_v2(exec, other, &update), 910);
    must(update.result == 3 && update.node == node);
    ok(cuStreamSynchronize(stream));
}

static void structures(void)
{
    struct resource resource = {.type = 2, .format = 32, .channels = 1, .bytes = 4096};
    uint64_t settings[13] = {0};
    unsigned long long texture;
    CUstream stream;

    begin();
    ok(cuStreamCreate(&stream, 0));
    write_by_operation(stream);
    update_graph(stream);
    resource.at = allocate(4096);
    ok(cuTexObjectCreate(&texture, &resource, settings, NULL));
    ok(cuTexObjectDestroy(texture));
    resource.bytes++;
    is(cuTexObjectCreate(&texture, &resource, settings, NULL), CUDA_ERROR_INVALID_VALUE);
    resource.type = 0;
    is(cuTexObjectCreate(&texture, &resource, settings, NULL), CUDA_ERROR_INVALID_HANDLE);
}

struct kernel_node {
    CUfunction function;
    unsigned int grid[3], block[3], shared;
    void **parameters, **extra;
};

struct host_node {
    CUhostFn function;
    void *user;
};

static _Atomic unsigned int node_calls;

static void count_node(void *user)
{
    must(user == &node_calls);
    node_calls++;
}

/* A kernel counts up where its parameter says; then a function of the program is called. */
static void kernel_nodes(void)
{
    CUdeviceptr at[2] = {0};
    void *parameters[] = {&at[0]}, *others[] = {&at[1]};
    struct kernel_node kernel = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .parameters = parameters};
    struct kernel_node told = {0};
    struct host_node host = {count_node, &node_calls}, told_host;
    CUgraphNode nodes[2];
    CUgraphExec exec;
    CUmodule module;
    CUgraph graph;

    kernel.function = load(&module, "count");
    for (unsigned int i = 0; i < 2; i++) {
        at[i] = allocate(4096);
        ok(cuMemsetD8_v2(at[i], 0, 4));
    }
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphAddKernelNode(&nodes[0], graph, NULL, 0, &kernel));
    ok(cuGraphAddHostNode(&nodes[1], graph, nodes, 1, &host));
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (unsigned int i = 0; i < 3; i++)
        ok(cuGraphLaunch(exec, NULL));
    ok(cuCtxSynchronize());
    must(read_word(at[0]) == 3 && node_calls == 3);
    ok(cuGraphKernelNodeGetParams(nodes[0], &told));
    must(told.function == kernel.function && told.grid[2] == 1 && !told.extra);
    must(*(CUdeviceptr *)told.parameters[0] == at[0]);
    ok(cuGraphHostNodeGetParams(nodes[1], &told_host));
    must(told_host.function == count_node && told_host.user == &node_calls);
    kernel.parameters = others;
    ok(cuGraphKernelNodeSetParams(nodes[0], &kernel));
    ok(cuGraphKernelNodeGetParams(nodes[0], &told));
    must(*(CUdeviceptr *)told.parameters[0] == at[1]);
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ok(cuGraphLaunch(exec, NULL));
    ok(cuCtxSynchronize());
    must(read_word(at[0]) == 3 && read_word(at[1]) == 1 && node_calls == 4);
    is(cuGraphAddHostNode(&nodes[1], graph, (CUgraphNode *)&graph, 1, &host),
       CUDA_ERROR_INVALID_VALUE);
}

/* A graph copies between the GPU and memory that it can reach when it is launched. */
static void copy_nodes(void)
{
    unsigned char own[64];
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = allocate(4096),
                          .WidthInBytes = sizeof(own),
                          .Height = 1,
                          .Depth = 1};
    void *pinned;
    CUgraph graph;
    CUgraphNode node;

    ok(cuGraphCreate(&graph, 0));
    ok(cuMemHostAlloc(&pinned, 4096, 0));
    copy.srcHost = pinned;
    ok(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL));
    copy.srcHost = own;
    is(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL), CUDA_ERROR_NOT_SUPPORTED);
    copy.srcHost = pinned;
    copy.Height = 4096;
    is(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* What a library asks that adds nodes to a graph which is being captured. */
static void capture_info(void)
{
    const CUgraphNode *last;
    CUgraph captured, graph;
    unsigned int status;
    CUstream stream;
    size_t count;
    uint64_t id;

    ok(cuStreamCreate(&stream, 0));
    ok(cuStreamGetCaptureInfo_v2(stream, &status, NULL, NULL, NULL, NULL));
    must(!status);
    ok(cuStreamBeginCapture_v2(stream, 2));
    ok(cuLaunchHostFunc(stream, count_node, &node_calls));
    ok(cuStreamGetCaptureInfo_v2(stream, &status, &id, &captured, &last, &count));
    must(status == 1 && id && count == 1 && *last);
    ok(cuStreamEndCapture(stream, &graph));
    must(graph == captured);
}

static void nodes(void)
{
    begin();
    kernel_nodes();
    copy_nodes();
    capture_info();
}

/* What is asked before anything is computed. */
static void facts(void)
{
    CUdriverProcAddressQueryResult status;
    char name[64], log[4096] = "";
    unsigned int options[] = {5, 6};
    void *values[] = {log, (void *)sizeof(log)};
    const char *is_called;
    CUmodule module;
    void *found;
    int version;

    ok(cuDriverGetVersion(&version));
    must(version >= 12000);
    begin();
    ok(cuDeviceGetName(name, sizeof(name), 0));
    must(*name);
    ok(cuFuncGetName(&is_called, load(&module, "axpy")));
    must(!strcmp(is_called, "axpy"));
    ok(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &is_called));
    must(!strcmp(is_called, "CUDA_ERROR_OUT_OF_MEMORY"));
    ok(cuGetProcAddress_v2("cuMemAlloc", &found, 12000, 0, &status));
    must(found == (void *)(uintptr_t)cuMemAlloc_v2 && status == CU_GET_PROC_ADDRESS_SUCCESS);
    ok(cuGetProcAddress_v2("cuNothing", &found, 12000, 0, &status));
    must(!found && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    ok(cuGetProcAddress_v2("cuLibraryLoadData", &found, 11000, 0, &status));
    must(!found && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    must(cuModuleLoadDataEx(&module, ".version 8.0\n.target sm_80\nnonsense", 2, options, values) !=
         CUDA_SUCCESS);
}

/* A child has no driver, and its parent goes on. */
static void forked(void)
{
    CUdeviceptr at;
    pid_t child;
    int status;

    begin();
    at = allocate(4096);
    child = fork();
    if (!child) {
        if (cuMemAlloc_v2(&at, 4096) != CUDA_ERROR_NOT_INITIALIZED)
            _exit(1);
        _exit(0);
    }
    must(waitpid(child, &status, 0) == child && status == 0);
    ok(cuMemFree_v2(at));
    ok(cuMemFree_v2(allocate(4096)));
}

/* Holds memory until it is killed. */
static void hold(void)
{
    begin();
    allocate(32 * MIB);
    puts("holding");
    fflush(stdout);
    for (;;)
        pause();
}

/* Its worker ends under it: an error, soon, for this thread and the others. */
static void *use_until_lost(void *data)
{
    CUdeviceptr at;
    CUresult result;

    (void)data;
    do
        result = cuMemAlloc_v2(&at, 4096);
    while (result == CUDA_SUCCESS && (result = cuMemFree_v2(at)) == CUDA_SUCCESS);
    return (void *)(uintptr_t)result;
}

static void lost(void)
{
    CUcontext context = begin();
    pthread_t other;
    void *result;

    (void)context;
    must(!pthread_create(&other, NULL, use_until_lost, NULL));
    puts("holding");
    fflush(stdout);
    result = use_until_lost(NULL);
    must((uintptr_t)result == 719);
    pthread_join(other, &result);
    must((uintptr_t)result == 719 || (uintptr_t)result == CUDA_ERROR_INVALID_CONTEXT);
    is(cuCtxSynchronize(), 719);
}

/* Fills that take the fake card 2 ms each, until it is killed: a line for each twelve. While it
 * waits for these, the next twelve are submitted. */
static void fill(void)
{
    size_t bytes = 2000000000;
    CUevent ends[2];
    CUdeviceptr at;

    begin();
    at = allocate(bytes);
    for (unsigned int i = 0; i < 2; i++)
        ok(cuEventCreate(&ends[i], 0));
    for (unsigned int turn = 0;; turn++) {
        for (unsigned int i = 0; i < 12; i++)
            ok(cuMemsetD32Async(at, 0, bytes / 4, NULL));
        ok(cuEventRecord(ends[turn % 2], NULL));
        if (!turn)
            continue;
        ok(cuEventSynchronize(ends[(turn - 1) % 2]));
        puts("filled");
        fflush(stdout);
    }
}

static int connect_to_guard(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("VGPU_CUDA_SOCKET");
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);

    strncpy(address.sun_path, path ? path : "/run/vgpu/cuda.sock", sizeof(address.sun_path) - 1);
    must(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Who keeps none of the protocol's rules: as many as there may be, and more; what is no message. */
static void hostile(void)
{
    static char much[65536];
    int held[100];

    for (unsigned int i = 0; i < 100; i++)
        held[i] = connect_to_guard();
    for (unsigned int i = 0; i < 100; i++)
        close(held[i]);
    for (unsigned int i = 0; i < 300; i++) {
        int fd = connect_to_guard();

        for (unsigned int n = 0; fd >= 0 && n < i % 20; n++)
            send(fd, much, (i * 7919) % sizeof(much), MSG_NOSIGNAL);
        close(fd);
    }
}

/* Computes in rounds until it is told to end; what it has computed was right. */
static volatile sig_atomic_t is_told;

static void note(int number)
{
    (void)number;
    is_told = 1;
}

static void goes_on(void)
{
    unsigned int word = 0;
    CUdeviceptr at;

    signal(SIGTERM, note);
    begin();
    at = allocate(4096);
    puts("holding");
    fflush(stdout);
    do {
        ok(cuMemsetD32Async(at, ++word, 1, NULL));
        must(read_word(at) == word);
        usleep(10000);
    } while (!is_told);
}

/* A worker that is no member of its slice has no context, and so no memory. */
static void no_arbiter(void)
{
    CUcontext context;
    CUdevice device;

    ok(cuInit(0));
    ok(cuDeviceGet(&device, 0));
    is(cuCtxCreate_v2(&context, 0, device), 802);
}

/* No CUDA for this program: there is no worker for it. */
static void refused(void)
{
    is(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

/* The host can't keep its GPU out of the worker's memory. */
static void unusable(void)
{
    is(cuInit(0), 802);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"compute", compute},
    {"limit", limit},
    {"large", large},
    {"objects", objects},
    {"threads", threads},
    {"graphs", graphs},
    {"callbacks", callbacks},
    {"waiting", waiting},
    {"order", order},
    {"posted", posted},
    {"blocking", blocking},
    {"managed", managed},
    {"nodes", nodes},
    {"structures", structures},
    {"rows", rows},
    {"captured-copies", captured_copies},
    {"facts", facts},
    {"forked", forked},
    {"hold", hold},
    {"lost", lost},
    {"unusable", unusable},
    {"fill", fill},
    {"refused", refused},
    {"goes-on", goes_on},
    {"no-arbiter", no_arbiter},
    {"hostile", hostile},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++)
        if (!strcmp(cases[i].name, argv[1])) {
            cases[i].run();
            return 0;
        }
    return 2;
}
