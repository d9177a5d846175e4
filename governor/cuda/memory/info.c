// SPDX-License-Identifier: MIT
/* How much memory there is in the slice. Vulkan's budget and NVML show the same. */
#include <limits.h>

#include "join.h"
#include "real.h"
#include "view.h"

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    CUresult result = DRIVER(cuMemGetInfo_v2, free, total);
    struct gpu *gpu = result == CUDA_SUCCESS && !real_depth ? gpu_current() : NULL;
    struct view view;

    if (!gpu || !view_of(gpu->member, total ? *total : UINT64_MAX, free ? *free : 0, &view))
        return result;
    if (free)
        *free = view.free;
    if (total)
        *total = view.total;
    return result;
}

/* 32 bits cannot hold the size of current cards, so the driver is asked by the newer call. */
static unsigned int narrow_bytes(uint64_t bytes)
{
    return bytes < UINT_MAX ? (unsigned int)bytes : UINT_MAX;
}

CUresult cuMemGetInfo(unsigned int *free, unsigned int *total)
{
    CUresult result = DRIVER(cuMemGetInfo, free, total);
    struct gpu *gpu = result == CUDA_SUCCESS && !real_depth ? gpu_current() : NULL;
    size_t card_free, card_total;
    struct view view;

    if (!gpu || DRIVER(cuMemGetInfo_v2, &card_free, &card_total) != CUDA_SUCCESS ||
        !view_of(gpu->member, card_total, card_free, &view))
        return result;
    if (free)
        *free = narrow_bytes(view.free);
    if (total)
        *total = narrow_bytes(view.total);
    return result;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    CUresult result = DRIVER(cuDeviceTotalMem_v2, bytes, dev);
    struct gpu *gpu = result == CUDA_SUCCESS && !real_depth ? gpu_of(dev) : NULL;
    struct view view;

    if (gpu && view_of(gpu->member, *bytes, 0, &view))
        *bytes = view.total;
    return result;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
    CUresult result = DRIVER(cuDeviceTotalMem, bytes, dev);
    struct gpu *gpu = result == CUDA_SUCCESS && !real_depth ? gpu_of(dev) : NULL;
    struct view view;
    size_t card;

    if (gpu && DRIVER(cuDeviceTotalMem_v2, &card, dev) == CUDA_SUCCESS &&
        view_of(gpu->member, card, 0, &view))
        *bytes = narrow_bytes(view.total);
    return result;
}
