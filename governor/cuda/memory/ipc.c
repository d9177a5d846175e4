// SPDX-License-Identifier: MIT
/*
 * Memory of other processes and of other APIs. A slice is charged for it once, as long as one of
 * its processes has it. The arbiter knows it by a name that all processes can tell: a hash of a
 * CUDA handle's bytes, or a descriptor's file.
 */
#include <pthread.h>

#include "forks.h"
#include "join.h"
#include "ranges.h"
#include "real.h"
#include "room.h"

/* In place of a file's device in a name; no device has this number. */
#define NAMED_BY_BYTES 0x4355444168616e64ull

/*
 * Over the counts of how often the same memory is opened, in the charge of its address. Never held
 * over a call of the driver's: as for vmm.c, what a call closes is taken out before it, and what it
 * opens is noted after it.
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

static bool is_of(const struct charge *charge, uint64_t name)
{
    return charge->imported && charge->object->inode == name;
}

/* True: the driver has given an address once more, and it is charged. */
static bool opened_again(CUdeviceptr dptr, const CUipcMemHandle *handle)
{
    struct charge charge;
    bool is_same;

    pthread_mutex_lock(&lock);
    is_same = ranges_take(&ranges_pointers, dptr, &charge);
    if (is_same) {
        is_same = is_of(&charge, hash_of(handle));
        charge.again += is_same;
        /* Otherwise what was there is gone: it was freed without us. */
        if (!is_same || !ranges_put(&ranges_pointers, dptr, &charge))
            charge_give(&charge);
    }
    pthread_mutex_unlock(&lock);
    return is_same;
}

/* Takes the charge. Another thread may have opened the same meanwhile. */
static void note_opened(CUdeviceptr dptr, struct charge *charge)
{
    struct charge before;

    pthread_mutex_lock(&lock);
    if (ranges_take(&ranges_pointers, dptr, &before)) {
        if (is_of(&before, charge->object->inode))
            charge->again += before.again + 1;
        charge_give(&before);
    }
    if (!ranges_put(&ranges_pointers, dptr, charge))
        charge_give(charge);
    pthread_mutex_unlock(&lock);
}

/* The size is known only after the call. */
static CUresult charge_opened(CUresult result, const CUdeviceptr *pdptr,
                              const CUipcMemHandle *handle)
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
    note_opened(*pdptr, &charge);
    return result;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    if (real_depth || !pdptr)
        return REAL(cuIpcOpenMemHandle_v2)(pdptr, handle, Flags);
    return charge_opened(DRIVER(cuIpcOpenMemHandle_v2, pdptr, handle, Flags), pdptr, &handle);
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    if (real_depth || !pdptr)
        return REAL(cuIpcOpenMemHandle)(pdptr, handle, Flags);
    return charge_opened(DRIVER(cuIpcOpenMemHandle, pdptr, handle, Flags), pdptr, &handle);
}

enum closing { NOT_OURS, ONE_LESS, LAST };

/* LAST: @charge is taken out. */
static enum closing begin_close(CUdeviceptr dptr, struct charge *charge)
{
    enum closing closing = NOT_OURS;

    pthread_mutex_lock(&lock);
    if (ranges_take(&ranges_pointers, dptr, charge)) {
        closing = !charge->imported ? NOT_OURS : charge->again ? ONE_LESS : LAST;
        charge->again -= closing == ONE_LESS;
        if (closing != LAST && !ranges_put(&ranges_pointers, dptr, charge))
            closing = LAST;
    }
    pthread_mutex_unlock(&lock);
    return closing;
}

/* The driver has refused it. */
static void open_once_more(CUdeviceptr dptr)
{
    struct charge charge;

    pthread_mutex_lock(&lock);
    if (ranges_take(&ranges_pointers, dptr, &charge)) {
        charge.again++;
        if (!ranges_put(&ranges_pointers, dptr, &charge))
            charge_give(&charge);
    }
    pthread_mutex_unlock(&lock);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    enum closing closing;
    struct charge charge;
    CUresult result;

    if (real_depth)
        return REAL(cuIpcCloseMemHandle)(dptr);
    closing = begin_close(dptr, &charge);
    result = DRIVER(cuIpcCloseMemHandle, dptr);
    if (closing == LAST && result == CUDA_SUCCESS)
        charge_give(&charge);
    else if (closing == LAST)
        note_opened(dptr, &charge);
    else if (closing == ONE_LESS && result != CUDA_SUCCESS)
        open_once_more(dptr);
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
    return room_take(gpu, of->size, charge);
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
