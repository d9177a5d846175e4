// SPDX-License-Identifier: MIT
/* A program that knows nothing of us: FFmpeg's own loader for CUDA, which opens libcuda.so.1 and
 * looks names up. */
#include <ffnvcodec/dynlink_loader.h>

#define MIB (1ull << 20)

int main(void)
{
    CUdeviceptr small, large;
    CudaFunctions *cuda = NULL;
    CUcontext context;
    int count = 0;

    if (cuda_load_functions(&cuda, NULL) || cuda->cuInit(0) || cuda->cuDeviceGetCount(&count) ||
        count != 1 || cuda->cuCtxCreate(&context, 0, 0))
        return 1;
    if (cuda->cuMemAlloc(&small, 4 * MIB) || cuda->cuMemAlloc(&large, 61 * MIB) != 2)
        return 2;
    if (cuda->cuMemFree(small) || cuda->cuMemAlloc(&large, 61 * MIB) || cuda->cuMemFree(large))
        return 3;
    if (cuda->cuCtxDestroy(context))
        return 4;
    cuda_free_functions(&cuda);
    return 0;
}
