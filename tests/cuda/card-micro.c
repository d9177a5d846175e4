// SPDX-License-Identifier: MIT
/*
 * card-micro [SCALE]: what calls of CUDA's driver cost a program, for tests/cuda/on-card --remote,
 * which runs it natively, in a slice, and with a worker. It does not know which. Prints "NAME
 * VALUE" lines; names end with their unit. SCALE: so many times fewer repetitions; default: 1.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_abi.h"

int cuInit(unsigned int flags);
int cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
int cuCtxGetCurrent(CUcontext *context);
int cuCtxSynchronize(void);
int cuModuleLoadData(CUmodule *module, const void *image);
int cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
int cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                   unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
                   void **parameters, void **extra);
int cuStreamCreate(CUstream *stream, unsigned int flags);
int cuStreamSynchronize(CUstream stream);
int cuStreamQuery(CUstream stream);
int cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
int cuStreamEndCapture(CUstream stream, CUgraph *graph);
int cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
int cuGraphLaunch(CUgraphExec exec, CUstream stream);
int cuEventCreate(CUevent *event, unsigned int flags);
int cuEventRecord(CUevent event, CUstream stream);
int cuEventQuery(CUevent event);
int cuMemAlloc_v2(CUdeviceptr *at, size_t bytes);
int cuMemFree_v2(CUdeviceptr at);
int cuMemHostAlloc(void **at, size_t bytes, unsigned int flags);
int cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
int cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
int cuPointerGetAttribute(void *data, unsigned int attribute, CUdeviceptr at);

#define MIB        (1u << 20)
#define COPY_BYTES (64u * MIB)
#define NODES      100u
#define BURST      64u

static const char empty_ptx[] = ".version 6.0\n.target sm_60\n.address_size 64\n"
                                ".visible .entry empty() { ret; }\n";

static CUfunction empty;
static CUstream stream;
static CUdeviceptr on_card;
static void *pinned, *pageable;
static unsigned int scale = 1;

static void check_result(int result, const char *what)
{
    if (!result)
        return;
    fprintf(stderr, "card-micro: %s: error %d\n", what, result);
    exit(1);
}
#define CHECK(call) check_result(call, #call)

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void launch_empty(void)
{
    CHECK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

static void launch_and_wait(void)
{
    launch_empty();
    CHECK(cuStreamSynchronize(stream));
}

static void query_stream(void)
{
    CHECK(cuStreamQuery(stream));
}

static void get_context(void)
{
    CUcontext context;

    CHECK(cuCtxGetCurrent(&context));
}

static void get_pointer(void)
{
    unsigned int type;

    CHECK(cuPointerGetAttribute(&type, 2, on_card));
}

static void query_event(void)
{
    static CUevent event;

    if (!event) {
        CHECK(cuEventCreate(&event, 0));
        CHECK(cuEventRecord(event, stream));
        CHECK(cuStreamSynchronize(stream));
    }
    CHECK(cuEventQuery(event));
}

static void allocate_and_free(void)
{
    CUdeviceptr at;

    CHECK(cuMemAlloc_v2(&at, 2 * MIB));
    CHECK(cuMemFree_v2(at));
}

static void copy_4_kib(void)
{
    CHECK(cuMemcpyHtoDAsync_v2(on_card, pinned, 4096, stream));
    CHECK(cuStreamSynchronize(stream));
}

static void copy_pinned_there(void)
{
    CHECK(cuMemcpyHtoDAsync_v2(on_card, pinned, COPY_BYTES, stream));
    CHECK(cuStreamSynchronize(stream));
}

static void copy_pinned_back(void)
{
    CHECK(cuMemcpyDtoHAsync_v2(pinned, on_card, COPY_BYTES, stream));
    CHECK(cuStreamSynchronize(stream));
}

static void copy_pageable_there(void)
{
    CHECK(cuMemcpyHtoD_v2(on_card, pageable, COPY_BYTES));
}

static void copy_pageable_back(void)
{
    CHECK(cuMemcpyDtoH_v2(pageable, on_card, COPY_BYTES));
}

static CUgraphExec graph_exec;

static void make_graph(void)
{
    CUgraph graph;

    CHECK(cuStreamBeginCapture_v2(stream, 2));
    for (unsigned int i = 0; i < NODES; i++)
        launch_empty();
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiateWithFlags(&graph_exec, graph, 0));
}

static void launch_graph(void)
{
    CHECK(cuGraphLaunch(graph_exec, stream));
    CHECK(cuStreamSynchronize(stream));
}

/* The mean in ns, after some that do not count. */
static double mean_ns(void (*call)(void), unsigned int count)
{
    uint64_t from;

    count = count / scale ? count / scale : 1;
    for (unsigned int i = 0; i < count / 10 + 2; i++)
        call();
    from = now_ns();
    for (unsigned int i = 0; i < count; i++)
        call();
    return (double)(now_ns() - from) / count;
}

/* Of bursts: how long each takes with its wait, and how long the program is in its calls. */
static void print_launches(void)
{
    unsigned int bursts = 500 / scale ? 500 / scale : 1;
    uint64_t in_calls = 0, from;

    for (unsigned int i = 0; i < BURST; i++)
        launch_empty();
    CHECK(cuStreamSynchronize(stream));
    from = now_ns();
    for (unsigned int i = 0; i < bursts; i++) {
        uint64_t begin = now_ns();

        for (unsigned int k = 0; k < BURST; k++)
            launch_empty();
        in_calls += now_ns() - begin;
        CHECK(cuStreamSynchronize(stream));
    }
    printf("launch-us %.4f\n", (double)(now_ns() - from) / bursts / BURST / 1000);
    printf("launch-call-us %.4f\n", (double)in_calls / bursts / BURST / 1000);
}

static double gib_a_second(void (*copy)(void))
{
    return (double)COPY_BYTES / (1u << 30) / (mean_ns(copy, 20) / 1e9);
}

int main(int argc, char **argv)
{
    uint64_t from = now_ns();
    CUcontext context;
    CUmodule module;

    if (argc > 1 && atoi(argv[1]) > 0)
        scale = (unsigned int)atoi(argv[1]);
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    printf("start-ms %.2f\n", (double)(now_ns() - from) / 1e6);
    CHECK(cuModuleLoadData(&module, empty_ptx));
    CHECK(cuModuleGetFunction(&empty, module, "empty"));
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuMemAlloc_v2(&on_card, COPY_BYTES));
    CHECK(cuMemHostAlloc(&pinned, COPY_BYTES, 0));
    pageable = calloc(1, COPY_BYTES);
    if (!pageable)
        return 1;
    memset(pinned, 1, COPY_BYTES);
    memset(pageable, 1, COPY_BYTES);
    make_graph();
    print_launches();
    printf("launch-wait-us %.4f\n", mean_ns(launch_and_wait, 5000) / 1000);
    printf("query-us %.4f\n", mean_ns(query_stream, 20000) / 1000);
    printf("event-query-us %.4f\n", mean_ns(query_event, 20000) / 1000);
    printf("context-us %.4f\n", mean_ns(get_context, 20000) / 1000);
    printf("pointer-us %.4f\n", mean_ns(get_pointer, 20000) / 1000);
    printf("allocate-us %.3f\n", mean_ns(allocate_and_free, 1000) / 1000);
    printf("copy-4-kib-us %.3f\n", mean_ns(copy_4_kib, 5000) / 1000);
    printf("pinned-there-gib %.3f\n", gib_a_second(copy_pinned_there));
    printf("pinned-back-gib %.3f\n", gib_a_second(copy_pinned_back));
    printf("pageable-there-gib %.3f\n", gib_a_second(copy_pageable_there));
    printf("pageable-back-gib %.3f\n", gib_a_second(copy_pageable_back));
    printf("graph-us %.3f\n", mean_ns(launch_graph, 500) / 1000);
    return 0;
}
