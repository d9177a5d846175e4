/* SPDX-License-Identifier: MIT */
/* The part that the programs of CUDA's driver interface here have in common. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define LAUNCHES 200

static void check(const char *what, CUresult result)
{
    if (result == CUDA_SUCCESS)
        return;
    printf("%s: %d\n", what, (int)result);
    exit(1);
}
#define CHECK(call) check(#call, call)

/* Loads @image, launches "add" in it, and prints how much memory there is, in MiB. */
static inline void use(const void *image)
{
    size_t free_bytes, total;
    CUcontext context;
    CUmodule module;
    CUfunction add;
    CUstream stream;
    CUdevice device;
    CUdeviceptr at;
    int count = 1 << 18;

    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, image));
    CHECK(cuModuleGetFunction(&add, module, "add"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAlloc(&at, 3 << 20));
    CHECK(cuMemsetD32Async(at, 0, 3 << 18, stream));
    for (int i = 0; i < LAUNCHES; i++) {
        CUdeviceptr x = at + (1 << 20), y = at + (2 << 20);
        void *parameters[] = {&at, &x, &y, &count};

        CHECK(cuLaunchKernel(add, 1024, 1, 1, 256, 1, 1, 0, stream, parameters, NULL));
    }
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemGetInfo(&free_bytes, &total));
    printf("%zu\n", total >> 20);
    CHECK(cuMemFree(at));
    CHECK(cuStreamDestroy(stream));
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));
}
