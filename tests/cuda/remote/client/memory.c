// SPDX-License-Identifier: MIT
#include "client.h"

#include <stdio.h>
#include <string.h>

/* 64 MiB are the slice's. */
void check_memory_limit(void)
{
    CUdeviceptr at, more;
    size_t left, total;

    begin_context();
    ok(cuMemGetInfo_v2(&left, &total));
    must(total == 64 * MIB && left <= total);
    at = allocate_device(48 * MIB);
    is(cuMemAlloc_v2(&more, 48 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    ok(cuMemFree_v2(at));
    ok(cuMemFree_v2(allocate_device(48 * MIB)));
}

/* Whatever the slice has: no more than that is given. */
void ask_beyond_memory(void)
{
    CUdeviceptr half, more;
    size_t left, total;

    begin_context();
    ok(cuMemGetInfo_v2(&left, &total));
    half = allocate_device(total / 2);
    is(cuMemAlloc_v2(&more, total / 2 + MIB), CUDA_ERROR_OUT_OF_MEMORY);
    ok(cuMemFree_v2(half));
    printf("of %llu MiB it has all, and is refused 1 MiB more\n", total / MIB);
}

/* Memory that the program and a kernel use by one address. */
void check_managed_memory(void)
{
    CUdeviceptr at;
    void *parameters[] = {&at};
    CUfunction count;
    CUmodule module;

    begin_context();
    count = load_function(&module, "count");
    ok(cuMemAllocManaged(&at, 4096, 1));
    *(unsigned int *)(uintptr_t)at = 41;
    ok(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    ok(cuCtxSynchronize());
    must(*(unsigned int *)(uintptr_t)at == 42);
    ok(cuMemFree_v2(at));
    is(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
}

#define WINDOW_PARTS 4096

/* As many parts of that size as there are. */
static unsigned int fill_window(void **at, unsigned int count, size_t bytes)
{
    while (count < WINDOW_PARTS && cuMemHostAlloc(&at[count], bytes, 0) == CUDA_SUCCESS)
        memset((char *)at[count++] + bytes - 4096, 1, 4096);
    must(count < WINDOW_PARTS);
    return count;
}

/* In a VM with a window of at least 16 MiB: what does not fit is refused, and what is given back is
 * used again. Large parts first, for a large window takes long to fill. */
void check_full_window(void)
{
    static void *at[WINDOW_PARTS];

    begin_context();
    for (unsigned int round = 0; round < 3; round++) {
        unsigned int large = fill_window(at, 0, 16 * MIB);
        unsigned int count = fill_window(at, large, MIB);

        must(16 * large + (count - large) >= 8);
        is(cuMemHostAlloc(&at[count], MIB, 0), CUDA_ERROR_OUT_OF_MEMORY);
        while (count)
            ok(cuMemFreeHost(at[--count]));
    }
}

#define LENT_PARTS 20
#define LENT_BYTES (2 * MIB)

/* Both directions, and a kernel that has the same address. */
static void use_lent_memory(unsigned int *at, CUdeviceptr device, CUfunction count)
{
    void *parameters[] = {&at};

    for (size_t i = 0; i < LENT_BYTES / sizeof(*at); i++)
        at[i] = (unsigned int)(i * 2654435761u);
    ok(cuMemcpyHtoD_v2(device, at, LENT_BYTES));
    must(read_word(device + LENT_BYTES - 4) == at[LENT_BYTES / 4 - 1]);
    memset(at, 0, LENT_BYTES);
    ok(cuMemcpyDtoH_v2(at, device, LENT_BYTES));
    for (size_t i = 0; i < LENT_BYTES / sizeof(*at); i++)
        must(at[i] == (unsigned int)(i * 2654435761u));
    at[0] = 41;
    ok(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    ok(cuCtxSynchronize());
    must(at[0] == 42);
}

#define ENDED_CONTEXTS 64

/* More of them than a VM may lend and a window of 16 MiB has: what is pinned ends with its context,
 * and no other's does. */
void check_pinned_of_ended(void)
{
    CUcontext other = begin_context(), context;
    unsigned int *at, *kept;
    CUdevice device;

    ok(cuDeviceGet(&device, 0));
    ok(cuMemHostAlloc((void **)&kept, LENT_BYTES, 0));
    *kept = 42;
    for (unsigned int i = 0; i < ENDED_CONTEXTS; i++) {
        ok(cuDevicePrimaryCtxRetain(&context, device));
        ok(cuCtxSetCurrent(context));
        ok(cuMemHostAlloc((void **)&at, LENT_BYTES, 0));
        *at = i;
        ok(cuDevicePrimaryCtxReset_v2(device));
        is(cuMemFreeHost(at), CUDA_ERROR_INVALID_VALUE);
    }
    for (unsigned int i = 0; i < ENDED_CONTEXTS; i++) {
        ok(cuCtxCreate_v2(&context, 0, device));
        ok(cuMemHostAlloc((void **)&at, LENT_BYTES, 0));
        *at = i;
        ok(cuCtxDestroy_v2(context));
    }
    must(*kept == 42);
    ok(cuCtxSetCurrent(other));
    ok(cuMemFreeHost(kept));
}

/* More than a window of 16 MiB has: it is the VM's own memory, and the GPU uses the same pages. */
void check_lent_memory(void)
{
    unsigned int *at[LENT_PARTS];
    CUfunction count;
    CUmodule module;
    CUdeviceptr device;

    begin_context();
    device = allocate_device(LENT_BYTES);
    count = load_function(&module, "count");
    for (unsigned int round = 0; round < 3; round++) {
        for (unsigned int i = 0; i < LENT_PARTS; i++) {
            ok(cuMemHostAlloc((void **)&at[i], LENT_BYTES, 0));
            use_lent_memory(at[i], device, count);
        }
        for (unsigned int i = 0; i < LENT_PARTS; i++) {
            must(at[i][1] == 2654435761u);
            ok(cuMemFreeHost(at[i]));
        }
    }
}
