// SPDX-License-Identifier: MIT
/* Arrays. The size is estimated before the call; the driver reports the real one after it. */
#include "ranges.h"
#include "real.h"

static uint64_t bytes_of_format(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    default:
        return 4;
    }
}

static uint64_t at_least_one(uint64_t count)
{
    return count ? count : 1;
}

static uint64_t estimate(uint64_t width, uint64_t height, uint64_t depth, CUarray_format format,
                         unsigned int channels, unsigned int flags)
{
    uint64_t bytes = bytes_of_format(format) * at_least_one(channels);

    if (flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return 0;
    if (__builtin_mul_overflow(bytes, at_least_one(width), &bytes) ||
        __builtin_mul_overflow(bytes, at_least_one(height), &bytes) ||
        __builtin_mul_overflow(bytes, at_least_one(depth), &bytes))
        return UINT64_MAX;
    return bytes;
}

/* False: beyond the limit; the array must be destroyed. */
static bool keep(struct charge *charge, uint64_t key, CUresult asked,
                 const CUDA_ARRAY_MEMORY_REQUIREMENTS *taken)
{
    struct charge before;

    if (!charge->gpu)
        return true;
    if (asked == CUDA_SUCCESS && charge->bytes && taken->size &&
        !charge_resize(charge, taken->size))
        return false;
    DRIVER(cuCtxGetCurrent, &charge->context);
    before = *charge;
    if (!ranges_put(&ranges_arrays, key, &before))
        return false;
    charge_give(&before);
    return true;
}

static CUresult made(CUresult result, CUarray *array, struct charge *charge)
{
    CUDA_ARRAY_MEMORY_REQUIREMENTS taken = {0};
    CUresult asked = CUDA_ERROR_NOT_FOUND;

    if (result == CUDA_SUCCESS && charge->gpu)
        asked = DRIVER(cuArrayGetMemoryRequirements, &taken, *array, charge->gpu->device);
    if (result == CUDA_SUCCESS && !keep(charge, (uintptr_t)*array, asked, &taken)) {
        DRIVER(cuArrayDestroy, *array);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS)
        charge_give(charge);
    return result;
}

CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
    const CUDA_ARRAY_DESCRIPTOR *of = pAllocateArray;
    struct charge charge;

    if (real_depth || !pHandle || !of)
        return REAL(cuArrayCreate_v2)(pHandle, of);
    if (!charge_take(gpu_current(),
                     estimate(of->Width, of->Height, 1, of->Format, of->NumChannels, 0), &charge))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return made(DRIVER(cuArrayCreate_v2, pHandle, of), pHandle, &charge);
}

CUresult cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray)
{
    const CUDA_ARRAY_DESCRIPTOR_v1 *of = pAllocateArray;
    struct charge charge;

    if (real_depth || !pHandle || !of)
        return REAL(cuArrayCreate)(pHandle, of);
    if (!charge_take(gpu_current(),
                     estimate(of->Width, of->Height, 1, of->Format, of->NumChannels, 0), &charge))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return made(DRIVER(cuArrayCreate, pHandle, of), pHandle, &charge);
}

CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    const CUDA_ARRAY3D_DESCRIPTOR *of = pAllocateArray;
    struct charge charge;

    if (real_depth || !pHandle || !of)
        return REAL(cuArray3DCreate_v2)(pHandle, of);
    if (!charge_take(
            gpu_current(),
            estimate(of->Width, of->Height, of->Depth, of->Format, of->NumChannels, of->Flags),
            &charge))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return made(DRIVER(cuArray3DCreate_v2, pHandle, of), pHandle, &charge);
}

CUresult cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray)
{
    const CUDA_ARRAY3D_DESCRIPTOR_v1 *of = pAllocateArray;
    struct charge charge;

    if (real_depth || !pHandle || !of)
        return REAL(cuArray3DCreate)(pHandle, of);
    if (!charge_take(
            gpu_current(),
            estimate(of->Width, of->Height, of->Depth, of->Format, of->NumChannels, of->Flags),
            &charge))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return made(DRIVER(cuArray3DCreate, pHandle, of), pHandle, &charge);
}

/* All further levels together take a third of the first. */
CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
                                const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                unsigned int numMipmapLevels)
{
    const CUDA_ARRAY3D_DESCRIPTOR *of = pMipmappedArrayDesc;
    CUDA_ARRAY_MEMORY_REQUIREMENTS taken = {0};
    CUresult result, asked = CUDA_ERROR_NOT_FOUND;
    struct charge charge;
    uint64_t bytes;

    if (real_depth || !pHandle || !of)
        return REAL(cuMipmappedArrayCreate)(pHandle, of, numMipmapLevels);
    bytes = estimate(of->Width, of->Height, of->Depth, of->Format, of->NumChannels, of->Flags);
    if (numMipmapLevels > 1 && bytes < UINT64_MAX / 2)
        bytes += bytes / 3;
    if (!charge_take(gpu_current(), bytes, &charge))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = DRIVER(cuMipmappedArrayCreate, pHandle, of, numMipmapLevels);
    if (result == CUDA_SUCCESS && charge.gpu)
        asked = DRIVER(cuMipmappedArrayGetMemoryRequirements, &taken, *pHandle, charge.gpu->device);
    if (result == CUDA_SUCCESS && !keep(&charge, (uintptr_t)*pHandle, asked, &taken)) {
        DRIVER(cuMipmappedArrayDestroy, *pHandle);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS)
        charge_give(&charge);
    return result;
}

static void freed(CUresult result, uint64_t key, bool known, struct charge *charge)
{
    if (known && (result == CUDA_SUCCESS || !ranges_put(&ranges_arrays, key, charge)))
        charge_give(charge);
}

CUresult cuArrayDestroy(CUarray hArray)
{
    struct charge charge;
    CUresult result;
    bool known;

    if (real_depth)
        return REAL(cuArrayDestroy)(hArray);
    known = ranges_take(&ranges_arrays, (uintptr_t)hArray, &charge);
    result = DRIVER(cuArrayDestroy, hArray);
    freed(result, (uintptr_t)hArray, known, &charge);
    return result;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
    struct charge charge;
    CUresult result;
    bool known;

    if (real_depth)
        return REAL(cuMipmappedArrayDestroy)(hMipmappedArray);
    known = ranges_take(&ranges_arrays, (uintptr_t)hMipmappedArray, &charge);
    result = DRIVER(cuMipmappedArrayDestroy, hMipmappedArray);
    freed(result, (uintptr_t)hMipmappedArray, known, &charge);
    return result;
}
