// SPDX-License-Identifier: MIT
/* What stands in front of the driver's functions for memory that cuMemAlloc() made (fronts.h). */
#include "captures.h"
#include "charge.h"
#include "chunks.h"
#include "fronts.h"
#include "join.h"
#include "mover.h"

#define PITCH_UNIT 512u

/* NULL: the driver's own memory is for it. */
static struct gpu *gpu_for(uint64_t bytes)
{
    struct gpu *gpu = bytes > CHUNKS_LEAST ? gpu_current() : NULL;

    return gpu && gpu->member && governor_member_moves(gpu->member) && mover_start(gpu) ? gpu
                                                                                        : NULL;
}

/* What the driver does, behind the gate. */
#define VISIT(call)                                                                                \
    __extension__({                                                                                \
        struct visit visit;                                                                        \
        CUresult visited = CUDA_ERROR_OUT_OF_MEMORY;                                               \
                                                                                                   \
        if (fronts_enter(&visit)) {                                                                \
            visited = (call);                                                                      \
            fronts_leave(&visit);                                                                  \
        }                                                                                          \
        visited;                                                                                   \
    })

cuMemAlloc_v2_function front_cuMemAlloc_v2;
CUresult front_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    struct gpu *gpu = gpu_for(bytesize);

    chunks_end_postponed();
    return VISIT(gpu ? chunks_alloc(gpu, dptr, bytesize) : CARD(cuMemAlloc_v2, dptr, bytesize));
}

cuMemAllocPitch_v2_function front_cuMemAllocPitch_v2;
CUresult front_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
                                  size_t Height, unsigned int ElementSizeBytes)
{
    size_t pitch = charge_round(WidthInBytes, PITCH_UNIT), bytes;
    bool is_valid = WidthInBytes && Height && !__builtin_mul_overflow(pitch, Height, &bytes) &&
                    (ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16);
    struct gpu *gpu = is_valid ? gpu_for(bytes) : NULL;
    CUresult result;

    if (!gpu)
        return VISIT(
            CARD(cuMemAllocPitch_v2, dptr, pPitch, WidthInBytes, Height, ElementSizeBytes));
    result = VISIT(chunks_alloc(gpu, dptr, bytes));
    if (result == CUDA_SUCCESS)
        *pPitch = pitch;
    return result;
}

static bool is_ours(CUdeviceptr at)
{
    struct chunked copy;

    return chunks_look(at, &copy);
}

/* The driver waits for the context's work before it frees memory. */
cuMemFree_v2_function front_cuMemFree_v2;
CUresult front_cuMemFree_v2(CUdeviceptr dptr)
{
    struct chunked copy;
    CUresult result;

    chunks_end_postponed();
    if (!chunks_look(dptr, &copy))
        return CARD(cuMemFree_v2, dptr);
    if (captures_any())
        return chunks_free_later(dptr);
    result = chunks_await_work(copy.context);
    return result == CUDA_SUCCESS ? chunks_free(dptr) : result;
}

/* Mapped memory cannot be freed by a stream: the stream is waited for. */
#define FREE_ASYNC(name, synchronise)                                                              \
    name##_function front_##name;                                                                  \
    CUresult front_##name(CUdeviceptr dptr, CUstream hStream)                                      \
    {                                                                                              \
        CUresult result;                                                                           \
                                                                                                   \
        if (!is_ours(dptr))                                                                        \
            return CARD(name, dptr, hStream);                                                      \
        result = CARD(synchronise, hStream);                                                       \
        return result == CUDA_SUCCESS ? chunks_free(dptr) : result;                                \
    }
FREE_ASYNC(cuMemFreeAsync, cuStreamSynchronize)
FREE_ASYNC(cuMemFreeAsync_ptsz, cuStreamSynchronize_ptsz)

cuMemGetAddressRange_v2_function front_cuMemGetAddressRange_v2;
CUresult front_cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    struct chunked copy;

    if (!chunks_look(dptr, &copy))
        return CARD(cuMemGetAddressRange_v2, pbase, psize, dptr);
    if (pbase)
        *pbase = copy.at;
    if (psize)
        *psize = copy.bytes;
    return CUDA_SUCCESS;
}

/* Numbers of the driver's own are not so large. */
#define FIRST_ID (1ull << 62)

/* As the driver says it of memory by cuMemAlloc(), wherever it is now. False: it would not. */
static bool tell_attribute(const struct chunked *chunked, void *data, CUpointer_attribute attribute,
                           CUdeviceptr at)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = chunked->context;
        return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned int *)data = CU_MEMORYTYPE_DEVICE;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = at;
        return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)data = FIRST_ID + chunked->id;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = chunked->gpu->device;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)data = chunked->at;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)data = chunked->bytes;
        return true;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned char *)data = 1;
        return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned char *)data = 0;
        return true;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data = 0;
        return true;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned int *)data = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = NULL;
        return true;
    default:
        return false;
    }
}

cuPointerGetAttribute_function front_cuPointerGetAttribute;
CUresult front_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct chunked copy;

    if (!data || !chunks_look(ptr, &copy))
        return CARD(cuPointerGetAttribute, data, attribute, ptr);
    return tell_attribute(&copy, data, attribute, ptr) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* What an attribute is not of, reads 0. */
cuPointerGetAttributes_function front_cuPointerGetAttributes;
CUresult front_cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes,
                                      void **data, CUdeviceptr ptr)
{
    struct chunked copy;

    if (!numAttributes || !attributes || !data || !chunks_look(ptr, &copy))
        return CARD(cuPointerGetAttributes, numAttributes, attributes, data, ptr);
    for (unsigned int i = 0; i < numAttributes; i++)
        if (!tell_attribute(&copy, data[i], attributes[i], ptr))
            *(unsigned int *)data[i] = 0;
    return CUDA_SUCCESS;
}

/* Mapped memory has no such handles. */
cuIpcGetMemHandle_function front_cuIpcGetMemHandle;
CUresult front_cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    return is_ours(dptr) ? CUDA_ERROR_NOT_SUPPORTED : VISIT(CARD(cuIpcGetMemHandle, pHandle, dptr));
}

/* As of memory by cuMemAlloc(). */
cuMemRetainAllocationHandle_function front_cuMemRetainAllocationHandle;
CUresult front_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    return is_ours((CUdeviceptr)(uintptr_t)addr)
               ? CUDA_ERROR_INVALID_VALUE
               : VISIT(CARD(cuMemRetainAllocationHandle, handle, addr));
}

static void let_stay(CUdeviceptr at)
{
    struct gpu *gpu = chunks_let_stay(at);

    if (gpu)
        mover_tell_unmovable(gpu);
}

/* Whoever has a descriptor of the memory has it for good. Behind the gate. */
static CUresult export_range(void *handle, CUdeviceptr at, size_t bytes, CUmemRangeHandleType type,
                             unsigned long long flags)
{
    CUresult result = CARD(cuMemGetHandleForAddressRange, handle, at, bytes, type, flags);

    if (result == CUDA_SUCCESS)
        let_stay(at);
    return result;
}

cuMemGetHandleForAddressRange_function front_cuMemGetHandleForAddressRange;
CUresult front_cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size,
                                             CUmemRangeHandleType handleType,
                                             unsigned long long flags)
{
    return VISIT(export_range(handle, dptr, size, handleType, flags));
}

/* So programs prepare memory for other devices, which reach it past the driver. Behind the gate. */
static CUresult set_attribute(const void *value, CUpointer_attribute attribute, CUdeviceptr at)
{
    CUresult result = CARD(cuPointerSetAttribute, value, attribute, at);

    if (result == CUDA_SUCCESS && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        let_stay(at);
    return result;
}

cuPointerSetAttribute_function front_cuPointerSetAttribute;
CUresult front_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                     CUdeviceptr ptr)
{
    return VISIT(set_attribute(value, attribute, ptr));
}

/* What other GPUs work with does not move: their work is not waited for. */
static CUresult enable_peer(CUcontext peer, unsigned int flags)
{
    CUresult result = CARD(cuCtxEnablePeerAccess, peer, flags);

    if (result == CUDA_SUCCESS)
        mover_stay();
    return result;
}

cuCtxEnablePeerAccess_function front_cuCtxEnablePeerAccess;
CUresult front_cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
    return VISIT(enable_peer(peerContext, Flags));
}
