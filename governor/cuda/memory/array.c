// SPDX-License-Identifier: MIT
/*
 * Arrays. Their size is an estimate: the driver reports it only of those that have no memory yet.
 */
#include "join.h"
#include "ranges.h"
#include "real.h"
#include "room.h"
#include "vmm.h"

/* Formats that say how large an element is with all its channels, by their numbers in cuda.h. */
static const struct {
    unsigned int first, last, bits;
} whole_formats[] = {
    {0x50, 0x50, 32}, /* 10, 10, 10 and 2 bits */
    {0x51, 0x51, 16}, /* YUV of 4:2:2, 4:4:4 in one plane; then in two or three, 8 and 16 bits */
    {0x52, 0x52, 32}, {0x53, 0x53, 12}, {0x54, 0x54, 24}, {0x55, 0x55, 16}, {0x56, 0x56, 32},
    {0x57, 0x57, 24}, {0x58, 0x58, 48}, {0x59, 0x59, 12}, {0x5a, 0x5a, 24}, {0x5b, 0x5b, 16},
    {0x5c, 0x5c, 32}, {0x5d, 0x5d, 24}, {0x5e, 0x5e, 48}, {0x9f, 0xa1, 24}, /* P010, P016 */
    {0xa2, 0xa2, 16},                                                       /* NV16 */
    {0xa3, 0xa4, 32},                                                       /* P210, P216 */
    {0xa5, 0xa5, 16},                                                       /* YUY2 */
    {0xa6, 0xa9, 32},                                                       /* Y210 to Y410 */
    {0xb0, 0xb0, 12},                                                       /* NV12 */
    {0xb1, 0xb1, 64},                                                       /* Y416 */
    {0xb2, 0xb2, 24}, {0xb3, 0xb3, 48}, {0xb4, 0xb4, 24}, {0xb5, 0xb5, 48}, /* YUV of 4:4:4 */
    {0xc0, 0xc0, 8},  {0xc1, 0xc1, 16}, {0xc2, 0xc2, 32}, /* 1, 2, 4 channels: UNORM_INT8 */
    {0xc3, 0xc3, 16}, {0xc4, 0xc4, 32}, {0xc5, 0xc5, 64}, /* UNORM_INT16 */
    {0xc6, 0xc6, 8},  {0xc7, 0xc7, 16}, {0xc8, 0xc8, 32}, /* SNORM_INT8 */
    {0xc9, 0xc9, 16}, {0xca, 0xca, 32}, {0xcb, 0xcb, 64}, /* SNORM_INT16 */
};

/* BC1 to BC7, of which an element is a block of 4 by 4. */
#define BLOCKS_FIRST 0x91u
#define BLOCKS_LAST  0x9eu
#define BLOCK_SIDE   4u

static bool is_in_blocks(CUarray_format format)
{
    return (unsigned int)format >= BLOCKS_FIRST && (unsigned int)format <= BLOCKS_LAST;
}

static bool is_half_block(CUarray_format format)
{
    return (unsigned int)format == 0x91 || (unsigned int)format == 0x92 ||
           (unsigned int)format == 0x97 || (unsigned int)format == 0x98;
}

static unsigned int bits_of_channel(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 8;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 16;
    default:
        return 32;
    }
}

/* Of an element, with all its channels. */
static uint64_t bits_of_element(CUarray_format format, unsigned int channels)
{
    unsigned int number = (unsigned int)format;

    if (is_in_blocks(format))
        return is_half_block(format) ? 64 : 128;
    for (unsigned int i = 0; i < sizeof(whole_formats) / sizeof(whole_formats[0]); i++)
        if (number >= whole_formats[i].first && number <= whole_formats[i].last)
            return whole_formats[i].bits;
    return (uint64_t)bits_of_channel(format) * (channels ? channels : 1);
}

static uint64_t at_least_one(uint64_t count)
{
    return count ? count : 1;
}

/* The GPU keeps arrays in tiles of 64 bytes in 8 rows. */
#define TILE_BYTES 64u
#define TILE_ROWS  8u

static uint64_t bytes_of_level(uint64_t width, uint64_t height, uint64_t depth, uint64_t bits)
{
    uint64_t bytes, rows = charge_round(at_least_one(height), TILE_ROWS);

    if (__builtin_mul_overflow(bits, at_least_one(width), &bytes) ||
        __builtin_mul_overflow(charge_round(bytes / 8 + (bytes % 8 != 0), TILE_BYTES), rows,
                               &bytes) ||
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

static uint64_t estimate_array(const CUDA_ARRAY3D_DESCRIPTOR *of, unsigned int levels)
{
    uint64_t bits = bits_of_element(of->Format, of->NumChannels);
    uint64_t side = is_in_blocks(of->Format) ? BLOCK_SIDE : 1;
    uint64_t bytes = 0;

    if (of->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return 0;
    for (unsigned int i = 0; i < levels && has_level(of, i); i++) {
        uint64_t depth = depth_in(of->Depth, i, of->Flags);
        uint64_t level = bytes_of_level(charge_round(of->Width >> i, side) / side,
                                        charge_round(of->Height >> i, side) / side, depth, bits);

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

    return estimate_array(&of, 1);
}

/* False: the array must be destroyed. */
static bool keep_charge(struct charge *charge, uint64_t key)
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

static CUresult keep_made(CUresult result, CUarray *array, struct charge *charge)
{
    if (result == CUDA_SUCCESS && !keep_charge(charge, (uintptr_t)*array)) {
        DRIVER(cuArrayDestroy, *array);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS)
        charge_give(charge);
    return result;
}

/* @of: a descriptor, of which estimate_of() says how large its array is. */
#define CREATE(name, type, estimate_of)                                                            \
    CUresult name(CUarray *pHandle, const type *of)                                                \
    {                                                                                              \
        struct charge charge;                                                                      \
                                                                                                   \
        if (real_depth || !pHandle || !of)                                                         \
            return REAL(name)(pHandle, of);                                                        \
        if (!room_take(gpu_current(), estimate_of(of), &charge))                                   \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                       \
        return keep_made(DRIVER(name, pHandle, of), pHandle, &charge);                             \
    }
#define FLAT(of)  estimate_flat((of)->Width, (of)->Height, (of)->Format, (of)->NumChannels)
#define SOLID(of) estimate_array(of, 1)

static uint64_t estimate_v1(const CUDA_ARRAY3D_DESCRIPTOR_v1 *of)
{
    const CUDA_ARRAY3D_DESCRIPTOR wide = {.Width = of->Width,
                                          .Height = of->Height,
                                          .Depth = of->Depth,
                                          .Format = of->Format,
                                          .NumChannels = of->NumChannels,
                                          .Flags = of->Flags};

    return estimate_array(&wide, 1);
}

CREATE(cuArrayCreate, CUDA_ARRAY_DESCRIPTOR_v1, FLAT)
CREATE(cuArrayCreate_v2, CUDA_ARRAY_DESCRIPTOR, FLAT)
CREATE(cuArray3DCreate, CUDA_ARRAY3D_DESCRIPTOR_v1, estimate_v1)
CREATE(cuArray3DCreate_v2, CUDA_ARRAY3D_DESCRIPTOR, SOLID)

CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
                                const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                unsigned int numMipmapLevels)
{
    const CUDA_ARRAY3D_DESCRIPTOR *of = pMipmappedArrayDesc;
    struct charge charge;
    CUresult result;

    if (real_depth || !pHandle || !of)
        return REAL(cuMipmappedArrayCreate)(pHandle, of, numMipmapLevels);
    if (!room_take(gpu_current(), estimate_array(of, numMipmapLevels), &charge))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = DRIVER(cuMipmappedArrayCreate, pHandle, of, numMipmapLevels);
    if (result == CUDA_SUCCESS && !keep_charge(&charge, (uintptr_t)*pHandle)) {
        DRIVER(cuMipmappedArrayDestroy, *pHandle);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS)
        charge_give(&charge);
    return result;
}

/* @charge stood for the array meanwhile. */
static void settle_freed(CUresult result, uint64_t key, bool known, struct charge *charge)
{
    if (result == CUDA_SUCCESS)
        vmm_array_ended(charge);
    else
        vmm_rename_array(charge, (const void *)(uintptr_t)key);
    if (known && (result == CUDA_SUCCESS || !ranges_put(&ranges_arrays, key, charge)))
        charge_give(charge);
}

#define DESTROY(name, type)                                                                        \
    CUresult name(type array)                                                                      \
    {                                                                                              \
        struct charge charge;                                                                      \
        CUresult result;                                                                           \
        bool known;                                                                                \
                                                                                                   \
        if (real_depth)                                                                            \
            return REAL(name)(array);                                                              \
        known = ranges_take(&ranges_arrays, (uintptr_t)array, &charge);                            \
        vmm_rename_array(array, &charge);                                                          \
        result = DRIVER(name, array);                                                              \
        settle_freed(result, (uintptr_t)array, known, &charge);                                    \
        return result;                                                                             \
    }
DESTROY(cuArrayDestroy, CUarray)
DESTROY(cuMipmappedArrayDestroy, CUmipmappedArray)
