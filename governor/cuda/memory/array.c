// SPDX-License-Identifier: MIT
/*
 * Arrays. Their size is an estimate: the driver reports it only of those that have no memory yet.
 */
#include "ranges.h"
#include "real.h"
#include "vmm.h"

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

/* The GPU keeps arrays in tiles of 64 bytes in 8 rows. */
#define TILE_BYTES 64u
#define TILE_ROWS  8u

static uint64_t bytes_of_level(uint64_t width, uint64_t height, uint64_t depth, uint64_t element)
{
    uint64_t bytes, rows = charge_round(at_least_one(height), TILE_ROWS);

    if (__builtin_mul_overflow(element, at_least_one(width), &bytes) ||
        __builtin_mul_overflow(charge_round(bytes, TILE_BYTES), rows, &bytes) ||
        __builtin_mul_overflow(bytes, at_least_one(depth), &bytes))
        return UINT64_MAX;
    return bytes;
}

/* Layers are not fewer in further levels. */
static uint64_t depth_in(uint64_t depth, unsigned int level, unsigned int flags)
{
    return flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP) ? depth : depth >> level;
}

/* The smallest level has one element. */
static bool has_level(const CUDA_ARRAY3D_DESCRIPTOR *of, unsigned int level)
{
    return !level || (level < 64 && (of->Width | of->Height | of->Depth) >> level);
}

static uint64_t estimate(const CUDA_ARRAY3D_DESCRIPTOR *of, unsigned int levels)
{
    uint64_t element = bytes_of_format(of->Format) * at_least_one(of->NumChannels);
    uint64_t bytes = 0;

    if (of->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return 0;
    for (unsigned int i = 0; i < levels && has_level(of, i); i++) {
        uint64_t depth = depth_in(of->Depth, i, of->Flags);
        uint64_t level = bytes_of_level(of->Width >> i, of->Height >> i, depth, element);

        if (__builtin_add_overflow(bytes, level, &bytes))
            return UINT64_MAX;
    }
    return charge_of_alloc(bytes);
}

static uint64_t estimate_flat(size_t width, size_t height, CUarray_format format,
                              unsigned int channels)
{
    const CUDA_ARRAY3D_DESCRIPTOR of = {
        .Width = width, .Height = height, .Format = format, .NumChannels = channels};

    return estimate(&of, 1);
}

/* False: the array must be destroyed. */
static bool keep(struct charge *charge, uint64_t key)
{
    struct charge before;

    if (!charge->gpu)
        return true;
    DRIVER(cuCtxGetCurrent, &charge->context);
    before = *charge;
    if (!ranges_put(&ranges_arrays, key, &before))
        return false;
    charge_give(&before);
    return true;
}

static CUresult made(CUresult result, CUarray *array, struct charge *charge)
{
    if (result == CUDA_SUCCESS && !keep(charge, (uintptr_t)*array)) {
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
                     estimate_flat(of->Width, of->Height, of->Format, of->NumChannels), &charge))
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
                     estimate_flat(of->Width, of->Height, of->Format, of->NumChannels), &charge))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return made(DRIVER(cuArrayCreate, pHandle, of), pHandle, &charge);
}

CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    const CUDA_ARRAY3D_DESCRIPTOR *of = pAllocateArray;
    struct charge charge;

    if (real_depth || !pHandle || !of)
        return REAL(cuArray3DCreate_v2)(pHandle, of);
    if (!charge_take(gpu_current(), estimate(of, 1), &charge))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return made(DRIVER(cuArray3DCreate_v2, pHandle, of), pHandle, &charge);
}

CUresult cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray)
{
    const CUDA_ARRAY3D_DESCRIPTOR_v1 *of = pAllocateArray;
    CUDA_ARRAY3D_DESCRIPTOR wide;
    struct charge charge;

    if (real_depth || !pHandle || !of)
        return REAL(cuArray3DCreate)(pHandle, of);
    wide = (CUDA_ARRAY3D_DESCRIPTOR){.Width = of->Width,
                                     .Height = of->Height,
                                     .Depth = of->Depth,
                                     .Format = of->Format,
                                     .NumChannels = of->NumChannels,
                                     .Flags = of->Flags};
    if (!charge_take(gpu_current(), estimate(&wide, 1), &charge))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return made(DRIVER(cuArray3DCreate, pHandle, of), pHandle, &charge);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
                                const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                unsigned int numMipmapLevels)
{
    const CUDA_ARRAY3D_DESCRIPTOR *of = pMipmappedArrayDesc;
    struct charge charge;
    CUresult result;

    if (real_depth || !pHandle || !of)
        return REAL(cuMipmappedArrayCreate)(pHandle, of, numMipmapLevels);
    if (!charge_take(gpu_current(), estimate(of, numMipmapLevels), &charge))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = DRIVER(cuMipmappedArrayCreate, pHandle, of, numMipmapLevels);
    if (result == CUDA_SUCCESS && !keep(&charge, (uintptr_t)*pHandle)) {
        DRIVER(cuMipmappedArrayDestroy, *pHandle);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS)
        charge_give(&charge);
    return result;
}

/* @charge stood for the array meanwhile. */
static void freed(CUresult result, uint64_t key, bool known, struct charge *charge)
{
    if (result == CUDA_SUCCESS)
        vmm_array_ended(charge);
    else
        vmm_rename_array(charge, (const void *)(uintptr_t)key);
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
    vmm_rename_array(hArray, &charge);
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
    vmm_rename_array(hMipmappedArray, &charge);
    result = DRIVER(cuMipmappedArrayDestroy, hMipmappedArray);
    freed(result, (uintptr_t)hMipmappedArray, known, &charge);
    return result;
}
