// SPDX-License-Identifier: MIT
/* Programs that end as if they were killed, in the middle of each kind of call. */
#include "client.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static CUcontext context;
static _Atomic unsigned int calls;

static void die(void)
{
    raise(SIGKILL);
}

static void die_in_call(void *data)
{
    (void)data;
    die();
}

static void never_return(void *data)
{
    (void)data;
    for (;;)
        pause();
}

static void start_thread(void *(*run)(void *), void *data)
{
    pthread_t thread;

    must(!pthread_create(&thread, NULL, run, data));
}

void die_starting(void)
{
    begin_context();
    allocate_device(8 * MIB);
    die();
}

/* Its last calls are in the ring, and nobody waits for them. */
void die_posting(void)
{
    CUdeviceptr at;

    begin_context();
    at = allocate_device(8 * MIB);
    for (unsigned int i = 0; i < 500; i++)
        ok(cuMemsetD32Async(at, i, MIB, NULL));
    die();
}

/* The driver calls a function of the program's, and the program ends in it. */
void die_called(void)
{
    CUstream stream;

    begin_context();
    allocate_device(8 * MIB);
    ok(cuStreamCreate(&stream, 0));
    ok(cuLaunchHostFunc(stream, die_in_call, NULL));
    cuStreamSynchronize(stream);
    for (;;)
        pause();
}

static void *await_stream(void *stream)
{
    atomic_fetch_add(&calls, 1);
    cuStreamSynchronize(stream);
    return NULL;
}

/* A thread of the worker's is in the driver, and will not come back. */
void die_waiting(void)
{
    CUstream stream;

    begin_context();
    allocate_device(8 * MIB);
    ok(cuStreamCreate(&stream, 0));
    ok(cuLaunchHostFunc(stream, never_return, NULL));
    start_thread(await_stream, stream);
    while (!calls)
        usleep(1000);
    ok(cuCtxSetCurrent(NULL));
    die();
}

static void *copy_on(void *data)
{
    void *from = calloc(1, 24 * MIB);

    CUdeviceptr at;

    ok(cuCtxSetCurrent(context));
    at = allocate_device(24 * MIB);
    for (; !data; calls++) {
        ok(cuMemcpyHtoD_v2(at, from, 24 * MIB));
        ok(cuMemcpyDtoH_v2(from, at, 24 * MIB));
    }
    return NULL;
}

void die_copying(void)
{
    context = begin_context();
    start_thread(copy_on, NULL);
    while (calls < 2)
        usleep(100);
    die();
}

static void *share_on(void *data)
{
    void *at;

    ok(cuCtxSetCurrent(context));
    for (; !data; calls++) {
        ok(cuMemHostAlloc(&at, MIB, 0));
        if (calls % 2)
            ok(cuMemFreeHost(at));
    }
    return NULL;
}

/* Memory is made for both. */
void die_sharing(void)
{
    context = begin_context();
    start_thread(share_on, NULL);
    while (calls < 20)
        usleep(100);
    die();
}

static void *begin_and_end(void *data)
{
    for (; !data; calls++)
        ok(cuCtxDestroy_v2(begin_context()));
    return NULL;
}

/* Contexts begin and end. */
void die_ending(void)
{
    begin_context();
    start_thread(begin_and_end, NULL);
    while (calls < 5)
        usleep(100);
    die();
}
