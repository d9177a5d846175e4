// SPDX-License-Identifier: MIT
#include "spike.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../compute_ptx.h"

#define COUNT 1024u

static void *driver;
static CUmodule module;

void card_load(void)
{
    const char *folder = getenv("SPIKE_DRIVER");
    char path[4096] = "libcuda.so.1";

    if (driver)
        return;
    spike_step("the driver is loaded");
    if (folder)
        snprintf(path, sizeof(path), "%s/libcuda.so.1", folder);
    driver = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!driver)
        spike_verdict(VERDICT_NOT_ASKED, "the driver cannot be loaded: %s", dlerror());
}

void *card_get(const char *name)
{
    void *function = dlsym(driver, name);

    if (!function)
        spike_verdict(VERDICT_NOT_ASKED, "the driver has no %s", name);
    return function;
}

void card_open(void)
{
    CUcontext context;

    card_load();
    spike_step("cuInit() runs");
    spike_need(DRIVER(cuInit, unsigned int)(0), "cuInit");
    spike_step("a context is made");
    spike_need(DRIVER(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)(&context, 0),
               "cuDevicePrimaryCtxRetain");
    spike_need(DRIVER(cuCtxSetCurrent, CUcontext)(context), "cuCtxSetCurrent");
}

CUdeviceptr card_allocate(size_t bytes)
{
    CUdeviceptr at = 0;

    spike_need(DRIVER(cuMemAlloc_v2, CUdeviceptr *, size_t)(&at, bytes), "cuMemAlloc");
    return at;
}

CUfunction card_function(const char *name)
{
    CUfunction function = NULL;

    spike_step("a kernel is compiled");
    if (!module)
        spike_need(DRIVER(cuModuleLoadData, CUmodule *, const void *)(&module, compute_ptx),
                   "cuModuleLoadData");
    spike_need(
        DRIVER(cuModuleGetFunction, CUfunction *, CUmodule, const char *)(&function, module, name),
        "cuModuleGetFunction");
    return function;
}

static CUresult launch(CUfunction function, unsigned int blocks, unsigned int threads,
                       void **parameters)
{
    CUresult result =
        DRIVER(cuLaunchKernel, CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,
               unsigned int, unsigned int, unsigned int, CUstream, void **,
               void **)(function, blocks, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL);

    return result == CUDA_SUCCESS ? DRIVER(cuCtxSynchronize, void)() : result;
}

CUresult card_count_at(CUdeviceptr at)
{
    void *parameters[] = {&at};
    CUfunction function = card_function("count");

    spike_step("a kernel runs");
    return launch(function, 1, 1, parameters);
}

bool card_computes(void)
{
    static float x[COUNT], z[COUNT];
    CUdeviceptr to = card_allocate(sizeof(z)), from = card_allocate(sizeof(x));
    unsigned int n = COUNT;
    float a = 0.5f;
    void *parameters[] = {&to, &from, &n, &a};
    CUfunction axpy = card_function("axpy");

    for (unsigned int i = 0; i < COUNT; i++)
        x[i] = (float)i;
    spike_step("a kernel runs");
    spike_need(DRIVER(cuMemcpyHtoD_v2, CUdeviceptr, const void *, size_t)(from, x, sizeof(x)),
               "cuMemcpyHtoD");
    spike_need(launch(axpy, COUNT / 256, 256, parameters), "a launch");
    spike_need(DRIVER(cuMemcpyDtoH_v2, void *, CUdeviceptr, size_t)(z, to, sizeof(z)),
               "cuMemcpyDtoH");
    for (unsigned int i = 0; i < COUNT; i++)
        if (z[i] != x[i] * 0.5f + 3)
            return false;
    return true;
}

static void *load_from(const char *folders, const char *name)
{
    char path[4096];
    void *library = NULL;

    if (!folders)
        return dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    while (*folders && !library) {
        size_t length = strcspn(folders, ":");

        snprintf(path, sizeof(path), "%.*s/%s", (int)length, folders, name);
        library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        folders += length + (folders[length] == ':');
    }
    return library;
}

void *spike_library(const char *const *names, const char **found)
{
    for (; *names; names++) {
        void *library = load_from(spike_libraries, *names);

        if (library) {
            *found = *names;
            return library;
        }
    }
    return NULL;
}
