// SPDX-License-Identifier: MIT
/* What is answered without the worker is what the driver would say: after contexts have ended, in
 * other threads, and of memory that was freed and is there again. */
#include "client.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuCtxPopCurrent_v2(CUcontext *context);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuDeviceGetAttribute(int *to, unsigned int attribute, CUdevice device);
CUresult cuFuncGetAttribute(int *to, unsigned int attribute, CUfunction function);
CUresult cuFuncSetAttribute(CUfunction function, unsigned int attribute, int value);
CUresult cuMemAllocAsync(CUdeviceptr *at, size_t bytes, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream);
CUresult cuPointerGetAttributes(unsigned int count, unsigned int *attributes, void **data,
                                CUdeviceptr at);
CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags);
CUresult cuStreamIsCapturing(CUstream stream, unsigned int *status);

enum { TYPE = 2, DEVICE_POINTER = 3, HOST_POINTER = 4, RANGE_START = 11, RANGE_SIZE = 12 };
enum { MOST_SHARED = 8 }; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */

static CUcontext current(void)
{
    CUcontext is = (CUcontext)8;

    ok(cuCtxGetCurrent(&is));
    return is;
}

/* A context that another thread has made, used and ended. */
static void *use_other_context(void *data)
{
    CUcontext *first = data, second;

    must(!current());
    ok(cuCtxSetCurrent(*first));
    must(current() == *first);
    ok(cuCtxCreate_v2(&second, 0, 0));
    must(current() == second);
    ok(cuCtxDestroy_v2(second));
    must(current() == *first);
    ok(cuCtxSetCurrent(NULL));
    must(!current());
    ok(cuCtxPushCurrent_v2(*first));
    must(current() == *first);
    ok(cuCtxPopCurrent_v2(&second));
    must(second == *first && !current());
    return NULL;
}

static void *end_context(void *context)
{
    ok(cuCtxDestroy_v2(context));
    return NULL;
}

static void run_thread(void *(*run)(void *), void *data)
{
    pthread_t thread;

    must(!pthread_create(&thread, NULL, run, data));
    must(!pthread_join(thread, NULL));
}

static void check_contexts(CUcontext context)
{
    CUcontext gone, next;
    CUdevice device = 7;

    run_thread(use_other_context, &context);
    must(current() == context);
    ok(cuCtxGetDevice(&device));
    must(device == 0);
    ok(cuCtxSetCurrent(NULL));
    is(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
    /* One that another thread ends is this one's no more, whatever takes its place. */
    ok(cuCtxCreate_v2(&gone, 0, 0));
    must(current() == gone);
    run_thread(end_context, gone);
    ok(cuCtxSetCurrent(context));
    ok(cuCtxCreate_v2(&next, 0, 0));
    must(current() == next);
    ok(cuCtxDestroy_v2(next));
    is(cuCtxSetCurrent(next), CUDA_ERROR_INVALID_CONTEXT);
    ok(cuCtxSetCurrent(context));
    must(current() == context);
}

static uint64_t ask(unsigned int attribute, CUdeviceptr at)
{
    uint64_t value = 0;

    ok(cuPointerGetAttribute(&value, attribute, at));
    return value;
}

/* Each twice, so that the second time it is known. */
static void check_memory(CUdeviceptr at, size_t bytes)
{
    unsigned int attributes[] = {TYPE, HOST_POINTER, RANGE_SIZE, RANGE_START}, type;
    uint64_t host, size, start;
    void *data[] = {&type, &host, &size, &start};

    for (unsigned int i = 0; i < 2; i++) {
        must(ask(TYPE, at) == 2 && ask(TYPE, at + bytes - 1) == 2);
        must(ask(RANGE_START, at + 1) == at && ask(RANGE_SIZE, at) == bytes);
        type = 0;
        host = 5;
        start = size = 0;
        ok(cuPointerGetAttributes(4, attributes, data, at + 4));
        must(type == 2 && !host && start == at && size == bytes);
        is(cuPointerGetAttribute(&host, HOST_POINTER, at), CUDA_ERROR_INVALID_VALUE);
    }
}

static void check_pointers(CUcontext context)
{
    CUdeviceptr at = allocate_device(8192), again;
    CUstream stream;
    unsigned int type;
    CUcontext other;
    void *pinned;

    check_memory(at, 8192);
    is(cuPointerGetAttribute(&type, TYPE, (uintptr_t)&type), CUDA_ERROR_INVALID_VALUE);
    ok(cuMemFree_v2(at));
    is(cuPointerGetAttribute(&type, TYPE, at), CUDA_ERROR_INVALID_VALUE);
    again = allocate_device(4096);
    check_memory(again, 4096);
    ok(cuMemFree_v2(again));
    ok(cuStreamCreate(&stream, 0));
    ok(cuMemAllocAsync(&at, 8192, stream));
    check_memory(at, 8192);
    ok(cuMemFreeAsync(at, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuMemHostAlloc(&pinned, 4096, 0));
    for (unsigned int i = 0; i < 2; i++)
        must(ask(TYPE, (uintptr_t)pinned + 4) == 1);
    ok(cuMemFreeHost(pinned));
    /* What ends with its context. */
    ok(cuCtxCreate_v2(&other, 0, 0));
    at = allocate_device(4096);
    check_memory(at, 4096);
    ok(cuCtxDestroy_v2(other));
    is(cuPointerGetAttribute(&type, TYPE, at), CUDA_ERROR_INVALID_VALUE);
    must(current() == context);
}

static int most_shared(CUfunction function)
{
    int value = -1;

    ok(cuFuncGetAttribute(&value, MOST_SHARED, function));
    return value;
}

static void check_functions(void)
{
    CUmodule module;
    CUfunction function = load_function(&module, "axpy");
    int value;

    must(most_shared(function) == most_shared(function));
    ok(cuFuncSetAttribute(function, MOST_SHARED, 2048));
    must(most_shared(function) == 2048 && most_shared(function) == 2048);
    ok(cuFuncSetAttribute(function, MOST_SHARED, 1024));
    must(most_shared(function) == 1024);
    ok(cuModuleUnload(module));
    is(cuFuncGetAttribute(&value, MOST_SHARED, function), CUDA_ERROR_INVALID_HANDLE);
}

static void check_captures(void)
{
    unsigned int status = 7, flags = 7;
    CUstream stream;
    CUgraph graph;

    ok(cuStreamCreate(&stream, 1));
    for (unsigned int i = 0; i < 3; i++) {
        ok(cuStreamIsCapturing(stream, &status));
        must(!status);
        ok(cuStreamBeginCapture_v2(stream, 2));
        ok(cuStreamIsCapturing(stream, &status));
        must(status == 1);
        ok(cuStreamEndCapture(stream, &graph));
        ok(cuGraphDestroy(graph));
        ok(cuStreamGetFlags(stream, &flags));
    }
    ok(cuStreamDestroy_v2(stream));
    is(cuStreamIsCapturing(stream, &status), CUDA_ERROR_INVALID_HANDLE);
    is(cuStreamGetFlags(stream, &flags), CUDA_ERROR_INVALID_HANDLE);
}

void check_local_answers(void)
{
    CUcontext context = begin_context();

    check_contexts(context);
    check_pointers(context);
    check_functions();
    check_captures();
}

static volatile sig_atomic_t is_told;

static void note_signal(int number)
{
    is_told = number;
}

/* What a program asks all the time. */
static void ask_all(CUcontext context, CUfunction function, CUdeviceptr at)
{
    unsigned int status;
    CUdevice device;
    int warp = 0;

    must(current() == context);
    ok(cuCtxSetCurrent(context));
    ok(cuCtxGetDevice(&device));
    must(ask(TYPE, at + 1) == 2);
    check_memory(at, 4096);
    ok(cuDeviceGetAttribute(&warp, 10, 0));
    must(warp == 32 && most_shared(function) >= 0);
    ok(cuStreamIsCapturing(NULL, &status));
}

/* It is asked once: afterwards the worker may be gone, and all is answered as before. */
void check_answers_without_worker(void)
{
    CUcontext context = begin_context();
    CUdeviceptr at = allocate_device(4096);
    CUmodule module;
    CUfunction function = load_function(&module, "axpy");

    signal(SIGTERM, note_signal);
    ask_all(context, function, at);
    puts("holding");
    fflush(stdout);
    while (!is_told)
        usleep(1000);
    ask_all(context, function, at);
    is(cuCtxSynchronize(), 719);
    is(cuCtxGetDevice(&(CUdevice){0}), 719);
}
