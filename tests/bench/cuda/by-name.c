// SPDX-License-Identifier: MIT
/*
 * The functions of libcuda.so.1 that cuda-load calls, by dlopen() and dlsym(), as CUDA's runtime
 * finds them. What stands before the driver by LD_PRELOAD is in the way of these only.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *find(const char *name)
{
    /* GLOBAL: the tests' kernels ask whether it is the fake driver. */
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    void *found = library ? dlsym(library, name) : NULL;

    if (!found) {
        fprintf(stderr, "cuda-load: %s: %s\n", name, dlerror());
        exit(1);
    }
    return found;
}

#define BY_NAME(name, parameters, ...)                                                             \
    int name parameters;                                                                           \
    int name parameters                                                                            \
    {                                                                                              \
        static int(*function) parameters;                                                          \
                                                                                                   \
        if (!function)                                                                             \
            *(void **)&function = find(#name);                                                     \
        return function(__VA_ARGS__);                                                              \
    }

BY_NAME(cuInit, (unsigned int flags), flags)
BY_NAME(cuCtxCreate_v2, (void **context, unsigned int flags, int device), context, flags, device)
BY_NAME(cuCtxGetCurrent, (void **context), context)
BY_NAME(cuCtxGetLimit, (size_t *to, unsigned int limit), to, limit)
BY_NAME(cuDeviceGetAttribute, (int *to, unsigned int attribute, int device), to, attribute, device)
BY_NAME(cuPointerGetAttribute, (void *to, unsigned int attribute, uint64_t at), to, attribute, at)
BY_NAME(cuStreamIsCapturing, (void *stream, unsigned int *status), stream, status)
BY_NAME(cuMemAlloc_v2, (uint64_t *at, size_t bytes), at, bytes)
BY_NAME(cuMemFree_v2, (uint64_t at), at)
BY_NAME(cuMemAllocHost_v2, (void **at, size_t bytes), at, bytes)
BY_NAME(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, void *stream), to, from,
        bytes, stream)
BY_NAME(cuStreamSynchronize, (void *stream), stream)
BY_NAME(cuModuleLoadData, (void **module, const void *image), module, image)
BY_NAME(cuModuleGetFunction, (void **found, void *module, const char *name), found, module, name)
BY_NAME(cuLaunchKernel,
        (void *f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
         unsigned int by, unsigned int bz, unsigned int shared, void *stream, void **parameters,
         void **extra),
        f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)
