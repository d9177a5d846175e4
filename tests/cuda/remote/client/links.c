// SPDX-License-Identifier: MIT
/* Code that is linked from files, which are the program's. */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../compute_ptx.h"

typedef struct CUlinkState_st *CUlinkState;

typedef struct {
    CUfunction function;
    unsigned int grid[3], block[3], shared_bytes;
    CUstream stream;
    void **parameters;
} MultiDeviceLaunch;

CUresult cuLinkCreate_v2(unsigned int count, unsigned int *options, void **values,
                         CUlinkState *state);
CUresult cuLinkAddFile(CUlinkState state, unsigned int type, const char *path, unsigned int count,
                       unsigned int *options, void **values);
CUresult cuLinkAddFile_v2(CUlinkState state, unsigned int type, const char *path,
                          unsigned int count, unsigned int *options, void **values);
CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *bytes);
CUresult cuLinkDestroy(CUlinkState state);
CUresult cuLaunchCooperativeKernelMultiDevice(MultiDeviceLaunch *list, unsigned int count,
                                              unsigned int flags);

/* A kernel of the linked code counts up, launched on all the devices that there are. */
static void launch_linked(void *cubin)
{
    CUdeviceptr at = allocate_device(4096);
    void *parameters[] = {&at};
    MultiDeviceLaunch launch[2] = {
        {.grid = {1, 1, 1}, .block = {1, 1, 1}, .parameters = parameters}};
    CUmodule module;

    ok(cuMemsetD8_v2(at, 0, 4));
    ok(cuModuleLoadData(&module, cubin));
    ok(cuModuleGetFunction(&launch[0].function, module, "count"));
    ok(cuStreamCreate(&launch[0].stream, 0));
    launch[1] = launch[0];
    ok(cuLaunchCooperativeKernelMultiDevice(launch, 1, 0));
    ok(cuCtxSynchronize());
    must(read_word(at) == 1);
    is(cuLaunchCooperativeKernelMultiDevice(launch, 2, 0), CUDA_ERROR_INVALID_VALUE);
    is(cuLaunchCooperativeKernelMultiDevice(NULL, 1, 0), CUDA_ERROR_INVALID_VALUE);
}

void check_linked_files(void)
{
    char path[] = "/tmp/vgpu-link-XXXXXX";
    int fd = mkstemp(path);
    CUlinkState state;
    void *cubin;
    size_t bytes;

    must(fd >= 0 && write(fd, compute_ptx, sizeof(compute_ptx) - 1) > 0);
    close(fd);
    begin_context();
    ok(cuLinkCreate_v2(0, NULL, NULL, &state));
    is(cuLinkAddFile_v2(state, 1, "/nonexistent.ptx", 0, NULL, NULL), 301);
    is(cuLinkAddFile_v2(NULL, 1, path, 0, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    is(cuLinkAddFile(state, 1, NULL, 0, NULL, NULL), 301);
    ok(cuLinkAddFile_v2(state, 1, path, 0, NULL, NULL));
    unlink(path);
    ok(cuLinkComplete(state, &cubin, &bytes));
    launch_linked(cubin);
    ok(cuLinkDestroy(state));
}
