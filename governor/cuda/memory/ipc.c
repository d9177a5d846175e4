// SPDX-License-Identifier: MIT
/*
 * Memory of other processes and of other APIs. A slice is charged for it once, as long as one of
 * its processes has it. The arbiter knows it by a name that all processes can tell: a hash of a
 * CUDA handle's bytes, or a descriptor's file.
 */
#include <pthread.h>

#include "forks.h"
#include "ranges.h"
#include "real.h"

/* In place of a file's device in a name; no device has this number. */
#define NAMED_BY_BYTES 0x4355444168616e64ull

/*
 * Over the driver's calls that open and close handles, too: it counts how often the same memory is
 * opened, and so does the charge of its address.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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

/* Which need not be the current context's: with peer access, another GPU's memory can be opened. */
static struct gpu *gpu_of_memory(CUdeviceptr dptr)
{
    CUdevice device;

    return DRIVER(cuPointerGetAttribute, &device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, dptr) ==
                   CUDA_SUCCESS
               ? gpu_of(device)
               : gpu_current();
}

/* True: the driver has given an address once more, and it is charged. */
static bool opened_again(CUdeviceptr dptr, const CUipcMemHandle *handle)
{
    struct charge charge;
    bool is_same;

    if (!ranges_take(&ranges_pointers, dptr, &charge))
        return false;
    is_same = charge.imported && charge.object->inode == hash_of(handle);
    charge.again += is_same;
    /* Otherwise what was there is gone: it was freed without us. */
    if (!is_same || !ranges_put(&ranges_pointers, dptr, &charge))
        charge_give(&charge);
    return is_same;
}

/* The size is known only after the call. Under the lock. */
static CUresult opened(CUresult result, const CUdeviceptr *pdptr, const CUipcMemHandle *handle)
{
    struct gpu *gpu = result == CUDA_SUCCESS ? gpu_of_memory(*pdptr) : NULL;
    struct charge charge;
    CUdeviceptr base;
    size_t bytes = 0;

    if (!gpu || opened_again(*pdptr, handle) ||
        DRIVER(cuMemGetAddressRange_v2, &base, &bytes, *pdptr) != CUDA_SUCCESS)
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
    CUresult result;

    if (real_depth || !pdptr)
        return REAL(cuIpcOpenMemHandle_v2)(pdptr, handle, Flags);
    pthread_mutex_lock(&lock);
    result = opened(DRIVER(cuIpcOpenMemHandle_v2, pdptr, handle, Flags), pdptr, &handle);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    CUresult result;

    if (real_depth || !pdptr)
        return REAL(cuIpcOpenMemHandle)(pdptr, handle, Flags);
    pthread_mutex_lock(&lock);
    result = opened(DRIVER(cuIpcOpenMemHandle, pdptr, handle, Flags), pdptr, &handle);
    pthread_mutex_unlock(&lock);
    return result;
}

/* Under the lock. */
static CUresult close_handle(CUdeviceptr dptr)
{
    struct charge charge;
    bool known = ranges_take(&ranges_pointers, dptr, &charge);
    CUresult result = DRIVER(cuIpcCloseMemHandle, dptr);
    bool ends = known && result == CUDA_SUCCESS && !charge.again;

    if (known && result == CUDA_SUCCESS && !ends)
        charge.again--;
    if (known && (ends || !ranges_put(&ranges_pointers, dptr, &charge)))
        charge_give(&charge);
    return result;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    CUresult result;

    if (real_depth)
        return REAL(cuIpcCloseMemHandle)(dptr);
    pthread_mutex_lock(&lock);
    result = close_handle(dptr);
    pthread_mutex_unlock(&lock);
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

void ipc_forget_parent(void)
{
    pthread_mutex_init(&lock, NULL);
}
