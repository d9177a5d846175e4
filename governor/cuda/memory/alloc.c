// SPDX-License-Identifier: MIT
/*
 * Memory by address: cuMemAlloc and similar calls. The driver frees memory first, the ledger after
 * it, so the ledger never shows memory as free that is in use.
 */
#include "join.h"
#include "pool.h"
#include "ranges.h"
#include "real.h"
#include "room.h"
#include "spill.h"

/* Corrects what was reserved to @bytes, and remembers it under @dptr. */
static bool keep_charge(struct charge *charge, CUdeviceptr dptr, uint64_t bytes)
{
    struct charge before;

    if (!charge->gpu)
        return true;
    if (!charge_resize(charge, bytes))
        return false;
    DRIVER(cuCtxGetCurrent, &charge->context);
    before = *charge;
    if (!ranges_put(&ranges_pointers, dptr, &before))
        return false;
    /* If the driver returns an address again, it was freed without us. */
    charge_give(&before);
    return true;
}

/* What comes after the driver's call: memory that cannot be remembered is freed. */
static CUresult keep_allocated(CUresult result, struct charge *charge, CUdeviceptr dptr,
                               uint64_t bytes)
{
    if (result == CUDA_SUCCESS && !keep_charge(charge, dptr, bytes)) {
        DRIVER(cuMemFree_v2, dptr);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS)
        charge_give(charge);
    return result;
}

static bool is_spilled(const struct charge *charge)
{
    return charge->kind == GOVERNOR_MEMORY_SPILL;
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    struct charge charge;
    CUresult result;

    if (real_depth || !dptr)
        return REAL(cuMemAlloc_v2)(dptr, bytesize);
    if (!room_take_or_spill(gpu_current(), charge_of_alloc(bytesize), &charge))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = is_spilled(&charge) ? spill_alloc(charge.gpu, dptr, bytesize)
                                 : DRIVER(cuMemAlloc_v2, dptr, bytesize);
    return keep_allocated(result, &charge, *dptr, charge.bytes);
}

/* Its addresses have 32 bits, and managed memory has others: it is never spilled. */
CUresult cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize)
{
    struct charge charge;
    CUresult result;

    if (real_depth || !dptr)
        return REAL(cuMemAlloc)(dptr, bytesize);
    if (!room_take(gpu_current(), charge_of_alloc(bytesize), &charge))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = DRIVER(cuMemAlloc, dptr, bytesize);
    return keep_allocated(result, &charge, *dptr, charge.bytes);
}

/* At the limit, a call that is wrong gets the driver's error all the same: programs free memory and
 * try again if that is what they lack. */
static CUresult refusal_of(bool is_valid)
{
    return is_valid ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
}

/* Charged as if all of it were on the GPU, unless it is spilled. */
CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    struct charge charge;
    CUresult result;

    if (real_depth || !dptr)
        return REAL(cuMemAllocManaged)(dptr, bytesize, flags);
    if (!room_take_or_spill(gpu_current(), charge_of_alloc(bytesize), &charge))
        return refusal_of(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST);
    result = DRIVER(cuMemAllocManaged, dptr, bytesize, flags);
    if (result == CUDA_SUCCESS && is_spilled(&charge) &&
        !spill_place(charge.gpu, *dptr, bytesize)) {
        DRIVER(cuMemFree_v2, *dptr);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return keep_allocated(result, &charge, *dptr, charge.bytes);
}

#define PITCH_UNIT 512u

/* An estimate: rows start at such multiples at least. The driver reports the real pitch. */
static uint64_t pitched_bytes(uint64_t width, uint64_t height)
{
    uint64_t pitch = charge_round(width, PITCH_UNIT), bytes;

    return __builtin_mul_overflow(pitch, height, &bytes) ? UINT64_MAX : charge_of_alloc(bytes);
}

static bool is_element_size(unsigned int bytes)
{
    return bytes == 4 || bytes == 8 || bytes == 16;
}

/* Managed memory has no rows of the driver's, so the pitch is ours. */
static CUresult spill_pitched(const struct charge *charge, CUdeviceptr *dptr, size_t *pitch,
                              size_t width, size_t height)
{
    size_t wide = charge_round(width, PITCH_UNIT);
    CUresult result = spill_alloc(charge->gpu, dptr, wide * height);

    if (result == CUDA_SUCCESS)
        *pitch = wide;
    return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes)
{
    struct charge charge;
    CUresult result;

    if (real_depth || !dptr || !pPitch)
        return REAL(cuMemAllocPitch_v2)(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
    if (!room_take_or_spill(gpu_current(), pitched_bytes(WidthInBytes, Height), &charge))
        return refusal_of(is_element_size(ElementSizeBytes));
    result = is_spilled(&charge)
                 ? spill_pitched(&charge, dptr, pPitch, WidthInBytes, Height)
                 : DRIVER(cuMemAllocPitch_v2, dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
    return keep_allocated(result, &charge, *dptr, pitched_bytes(*pPitch, Height));
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch, unsigned int WidthInBytes,
                         unsigned int Height, unsigned int ElementSizeBytes)
{
    struct charge charge;
    CUresult result;

    if (real_depth || !dptr || !pPitch)
        return REAL(cuMemAllocPitch)(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
    if (!room_take(gpu_current(), pitched_bytes(WidthInBytes, Height), &charge))
        return refusal_of(is_element_size(ElementSizeBytes));
    result = DRIVER(cuMemAllocPitch, dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
    return keep_allocated(result, &charge, *dptr, pitched_bytes(*pPitch, Height));
}

/*
 * The charge is removed from the map before the driver frees the memory: right after, another
 * thread can get the same address. It is given back, or put back, after the call.
 */
CUresult cuMemFree_v2(CUdeviceptr dptr)
{
    struct pool *pool = NULL;
    struct charge charge;
    CUresult result;
    bool known;

    if (real_depth)
        return REAL(cuMemFree_v2)(dptr);
    known = ranges_take(&ranges_pointers, dptr, &charge);
    if (!known)
        pool = pool_before_free(dptr);
    result = DRIVER(cuMemFree_v2, dptr);
    if (known && (result == CUDA_SUCCESS || !ranges_put(&ranges_pointers, dptr, &charge)))
        charge_give(&charge);
    pool_after_free(pool, dptr, result);
    return result;
}

CUresult cuMemFree(CUdeviceptr_v1 dptr)
{
    struct charge charge;
    CUresult result;
    bool known;

    if (real_depth)
        return REAL(cuMemFree)(dptr);
    known = ranges_take(&ranges_pointers, dptr, &charge);
    result = DRIVER(cuMemFree, dptr);
    if (known && (result == CUDA_SUCCESS || !ranges_put(&ranges_pointers, dptr, &charge)))
        charge_give(&charge);
    return result;
}
