// SPDX-License-Identifier: MIT
/*
 * Memory of other processes and of other APIs. A slice is charged for it once, as long as one of
 * its processes has it. The arbiter knows it by a name that all processes can tell: a hash of a
 * CUDA handle's bytes, or a descriptor's file.
 */
#include <string.h>

#include "ranges.h"
#include "real.h"

/* In place of a file's device in a name; no device has this number. */
#define NAMED_BY_BYTES 0x4355444168616e64ull

/* FNV-1a. */
static uint64_t hash_of(const CUipcMemHandle *handle)
{
    uint64_t hash = 0xcbf29ce484222325ull;

    for (size_t i = 0; i < sizeof(handle->reserved); i++)
        hash = (hash ^ (unsigned char)handle->reserved[i]) * 0x100000001b3ull;
    return hash;
}

/* The address can be inside an allocation. */
static CUdeviceptr base_of(CUdeviceptr dptr)
{
    CUdeviceptr base = dptr;
    size_t size = 0;

    return DRIVER(cuMemGetAddressRange_v2, &base, &size, dptr) == CUDA_SUCCESS ? base : dptr;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    struct charge charge;
    CUdeviceptr base;
    CUresult result;

    if (real_depth || !pHandle)
        return REAL(cuIpcGetMemHandle)(pHandle, dptr);
    result = DRIVER(cuIpcGetMemHandle, pHandle, dptr);
    if (result != CUDA_SUCCESS)
        return result;
    base = base_of(dptr);
    if (!ranges_take(&ranges_pointers, base, &charge))
        return result;
    charge_export(&charge, NAMED_BY_BYTES, hash_of(pHandle));
    if (!ranges_put(&ranges_pointers, base, &charge))
        charge_give(&charge);
    return result;
}

/* The size is known only after the call. */
static CUresult opened(CUresult result, const CUdeviceptr *pdptr, const CUipcMemHandle *handle)
{
    struct gpu *gpu = result == CUDA_SUCCESS ? gpu_current() : NULL;
    struct charge charge;
    CUdeviceptr base;
    size_t bytes = 0;

    if (!gpu || DRIVER(cuMemGetAddressRange_v2, &base, &bytes, *pdptr) != CUDA_SUCCESS)
        return result;
    if (!charge_import(gpu, NAMED_BY_BYTES, hash_of(handle), charge_of_alloc(bytes), &charge)) {
        DRIVER(cuIpcCloseMemHandle, *pdptr);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    DRIVER(cuCtxGetCurrent, &charge.context);
    ranges_put(&ranges_pointers, *pdptr, &charge);
    charge_give(&charge);
    return result;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    if (real_depth || !pdptr)
        return REAL(cuIpcOpenMemHandle_v2)(pdptr, handle, Flags);
    return opened(DRIVER(cuIpcOpenMemHandle_v2, pdptr, handle, Flags), pdptr, &handle);
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    if (real_depth || !pdptr)
        return REAL(cuIpcOpenMemHandle)(pdptr, handle, Flags);
    return opened(DRIVER(cuIpcOpenMemHandle, pdptr, handle, Flags), pdptr, &handle);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    struct charge charge;
    CUresult result;
    bool known;

    if (real_depth)
        return REAL(cuIpcCloseMemHandle)(dptr);
    known = ranges_take(&ranges_pointers, dptr, &charge);
    result = DRIVER(cuIpcCloseMemHandle, dptr);
    if (known && (result == CUDA_SUCCESS || !ranges_put(&ranges_pointers, dptr, &charge)))
        charge_give(&charge);
    return result;
}

/* Before the call, because the call closes the descriptor. */
static bool charge_external(const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *of, struct charge *charge)
{
    struct gpu *gpu = gpu_current();
    uint64_t device, inode;

    *charge = (struct charge){0};
    if (of->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
        return true;
    if (charge_names(of->handle.fd, &device, &inode))
        return charge_import(gpu, device, inode, of->size, charge);
    return charge_take(gpu, of->size, charge);
}

CUresult cuImportExternalMemory(CUexternalMemory *extMem_out,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc)
{
    struct charge charge;
    CUresult result;

    if (real_depth || !extMem_out || !memHandleDesc)
        return REAL(cuImportExternalMemory)(extMem_out, memHandleDesc);
    if (!charge_external(memHandleDesc, &charge))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = DRIVER(cuImportExternalMemory, extMem_out, memHandleDesc);
    if (result == CUDA_SUCCESS && charge.gpu) {
        DRIVER(cuCtxGetCurrent, &charge.context);
        ranges_put(&ranges_externals, (uintptr_t)*extMem_out, &charge);
    }
    charge_give(&charge);
    return result;
}

CUresult cuDestroyExternalMemory(CUexternalMemory extMem)
{
    struct charge charge;
    CUresult result;
    bool known;

    if (real_depth)
        return REAL(cuDestroyExternalMemory)(extMem);
    known = ranges_take(&ranges_externals, (uintptr_t)extMem, &charge);
    result = DRIVER(cuDestroyExternalMemory, extMem);
    if (known &&
        (result == CUDA_SUCCESS || !ranges_put(&ranges_externals, (uintptr_t)extMem, &charge)))
        charge_give(&charge);
    return result;
}
