// SPDX-License-Identifier: MIT
/*
 * Launches of functions; those of graphs are in memory/graph.c.
 * cuLaunchCooperativeKernelMultiDevice, which CUDA 13 dropped, has a list of GPUs and is not
 * measured.
 */
#include "fronts.h"
#include "meter.h"
#include "real.h"

#define MEASURED(on_stream, own_default, function, threads, name, ...)                             \
    struct launch launch = {                                                                       \
        .what = function, .size = threads, .stream = on_stream, .per_thread = own_default};        \
    CUresult result;                                                                               \
                                                                                                   \
    if (real_depth)                                                                                \
        return REAL(name)(__VA_ARGS__);                                                            \
    if (!meter_before(&launch))                                                                    \
        return CUDA_ERROR_SYSTEM_NOT_READY;                                                        \
    result = LAUNCH(name, __VA_ARGS__);                                                            \
    if (launch.batch)                                                                              \
        meter_launched(&launch, result == CUDA_SUCCESS);                                           \
    return result

/* Before functions had their grid in the launch. */
CUresult cuLaunch(CUfunction f)
{
    MEASURED(NULL, false, f, 0, cuLaunch, f);
}

CUresult cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
    MEASURED(NULL, false, f, (uint64_t)grid_width * (uint64_t)grid_height, cuLaunchGrid, f,
             grid_width, grid_height);
}

CUresult cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
    MEASURED(hStream, false, f, (uint64_t)grid_width * (uint64_t)grid_height, cuLaunchGridAsync, f,
             grid_width, grid_height, hStream);
}

#define THREADS (1ull * gridDimX * gridDimY * gridDimZ * blockDimX * blockDimY * blockDimZ)
#define SHAPE   f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                        void **kernelParams, void **extra)
{
    MEASURED(hStream, false, f, THREADS, cuLaunchKernel, SHAPE, hStream, kernelParams, extra);
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                             unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                             unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                             void **kernelParams, void **extra)
{
    MEASURED(hStream, true, f, THREADS, cuLaunchKernel_ptsz, SHAPE, hStream, kernelParams, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX,
                                   unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream,
                                   void **kernelParams)
{
    MEASURED(hStream, false, f, THREADS, cuLaunchCooperativeKernel, SHAPE, hStream, kernelParams);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                        unsigned int gridDimZ, unsigned int blockDimX,
                                        unsigned int blockDimY, unsigned int blockDimZ,
                                        unsigned int sharedMemBytes, CUstream hStream,
                                        void **kernelParams)
{
    MEASURED(hStream, true, f, THREADS, cuLaunchCooperativeKernel_ptsz, SHAPE, hStream,
             kernelParams);
}

/* NULL is the driver's to refuse. */
static uint64_t threads_of(const CUlaunchConfig *config)
{
    return config ? 1ull * config->gridDimX * config->gridDimY * config->gridDimZ *
                        config->blockDimX * config->blockDimY * config->blockDimZ
                  : 0;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                          void **extra)
{
    MEASURED(config ? config->hStream : NULL, false, f, threads_of(config), cuLaunchKernelEx,
             config, f, kernelParams, extra);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                               void **extra)
{
    MEASURED(config ? config->hStream : NULL, true, f, threads_of(config), cuLaunchKernelEx_ptsz,
             config, f, kernelParams, extra);
}
