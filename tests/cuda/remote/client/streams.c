// SPDX-License-Identifier: MIT
#include "client.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

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
void check_callbacks(void)
{
    CUstream stream;
    CUgraphExec exec;
    CUgraph graph;

    begin_context();
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

void check_waiting_thread(void)
{
    CUstream stream;
    pthread_t other;
    void *at;

    begin_context();
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

/* An error of a call that was posted is the next one's, once. */
void check_posted_error(void)
{
    CUstream stream;

    begin_context();
    ok(cuStreamCreate(&stream, 0));
    ok(cuMemsetD32Async(0x7f0000000000, 0, 4, stream));
    is(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_VALUE);
    ok(cuStreamSynchronize(stream));
}

/* Unless the program wants to have it at once. */
void check_blocking_launches(void)
{
    CUstream stream;

    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    begin_context();
    ok(cuStreamCreate(&stream, 0));
    is(cuMemsetD32Async(0x7f0000000000, 0, 4, stream), CUDA_ERROR_INVALID_VALUE);
    ok(cuStreamSynchronize(stream));
}
