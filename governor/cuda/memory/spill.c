// SPDX-License-Identifier: MIT
#include "spill.h"

#include "real.h"

bool spill_possible(const struct gpu *gpu)
{
    int possible = 0;

    return DRIVER(cuDeviceGetAttribute, &possible, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
                  gpu->device) == CUDA_SUCCESS &&
           possible;
}

/*
 * A GPU that may access memory preferred elsewhere maps it there. Without the second advice its
 * first accesses are faults.
 */
bool spill_place(const struct gpu *gpu, CUdeviceptr at, size_t bytes)
{
    return DRIVER(cuMemAdvise, at, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU) ==
               CUDA_SUCCESS &&
           DRIVER(cuMemAdvise, at, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, gpu->device) ==
               CUDA_SUCCESS;
}

CUresult spill_alloc(const struct gpu *gpu, CUdeviceptr *at, size_t bytes)
{
    CUdeviceptr made;
    CUresult result = DRIVER(cuMemAllocManaged, &made, bytes, CU_MEM_ATTACH_GLOBAL);

    if (result != CUDA_SUCCESS)
        return result;
    if (!spill_place(gpu, made, bytes)) {
        DRIVER(cuMemFree_v2, made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *at = made;
    return CUDA_SUCCESS;
}
