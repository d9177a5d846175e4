// SPDX-License-Identifier: MIT
/* Copies in forms that are another form of copy, or a number of them. */
#include "remote.h"

#include <string.h>

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *of);
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *of);
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *of, CUstream stream);
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *of);
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *of, CUstream stream);
CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D *of, CUstream stream);

/* In what order a copy's source is read; as the driver lays it out. */
struct CUmemcpyAttributes_st {
    unsigned int order;
    int places[4];
    unsigned int flags;
};

enum { ORDER_FIRST = 1, ORDER_LAST = 3 };
enum { OPERAND_POINTER = 1, OPERAND_ARRAY = 2 };

#define NO_COPY SIZE_MAX

static bool is_order(unsigned int order)
{
    return order >= ORDER_FIRST && order <= ORDER_LAST;
}

/* Each copy has attributes: those of the last index that is not behind it. */
static bool attributes_fit(const CUmemcpyAttributes *attributes, const size_t *indices,
                           size_t attributes_count, size_t count)
{
    if (!attributes || !indices || !attributes_count || attributes_count > count || indices[0])
        return false;
    for (size_t i = 0; i < attributes_count; i++)
        if (!is_order(attributes[i].order) || indices[i] >= count ||
            (i && indices[i] <= indices[i - 1]))
            return false;
    return true;
}

#define BATCH_ARGUMENTS                                                                            \
    CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,                               \
        CUmemcpyAttributes *attributes, size_t *indices, size_t attributes_count

/* One after the other, which is an order that a batch may have. */
static CUresult copy_batch(BATCH_ARGUMENTS, size_t *failed, CUstream stream,
                           CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t, CUstream))
{
    CUresult result = connect_state();

    if (failed)
        *failed = NO_COPY;
    if (!to || !from || !sizes || !count ||
        !attributes_fit(attributes, indices, attributes_count, count))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = copy(to[i], from[i], sizes[i], stream);
        if (result != CUDA_SUCCESS && failed)
            *failed = i;
    }
    return result;
}

#define BATCH_TELLING(name, copy)                                                                  \
    EXPORT CUresult name(BATCH_ARGUMENTS, size_t *failed, CUstream stream);                        \
    CUresult name(BATCH_ARGUMENTS, size_t *failed, CUstream stream)                                \
    {                                                                                              \
        return copy_batch(to, from, sizes, count, attributes, indices, attributes_count, failed,   \
                          stream, copy);                                                           \
    }
BATCH_TELLING(cuMemcpyBatchAsync, cuMemcpyAsync)
BATCH_TELLING(cuMemcpyBatchAsync_ptsz, cuMemcpyAsync_ptsz)

#define BATCH(name, copy)                                                                          \
    EXPORT CUresult name(BATCH_ARGUMENTS, CUstream stream);                                        \
    CUresult name(BATCH_ARGUMENTS, CUstream stream)                                                \
    {                                                                                              \
        return copy_batch(to, from, sizes, count, attributes, indices, attributes_count, NULL,     \
                          stream, copy);                                                           \
    }
BATCH(cuMemcpyBatchAsync_v2, cuMemcpyAsync)
BATCH(cuMemcpyBatchAsync_v2_ptsz, cuMemcpyAsync_ptsz)

/*
 * An operation of rows counts in elements: those of the array that it copies from or to; bytes
 * without one. So do its operands: where[0] is an address or an array, where[1] and where[2] are
 * the elements of a row and the rows of a layer, or where[1] to where[3] the place in the array.
 */
struct array_descriptor {
    size_t width, height, depth;
    unsigned int format, channels, flags;
};

CUresult cuArray3DGetDescriptor_v2(struct array_descriptor *to, CUarray array);

static CUresult element_bytes(const CUmemcpy3DOperand *operand, size_t *bytes)
{
    enum { UINT8 = 1, UINT16 = 2, UINT32 = 3, INT8 = 8, INT16 = 9, INT32 = 10, HALF = 16 };
    enum { FLOAT = 32 };
    struct array_descriptor array;
    CUresult result;

    if (operand->type != OPERAND_ARRAY)
        return CUDA_SUCCESS;
    result = cuArray3DGetDescriptor_v2(&array, (CUarray)(uintptr_t)operand->where[0]);
    if (result != CUDA_SUCCESS)
        return result;
    switch (array.format) {
    case UINT8:
    case INT8:
        *bytes = array.channels;
        return CUDA_SUCCESS;
    case UINT16:
    case INT16:
    case HALF:
        *bytes = (size_t)array.channels * 2;
        return CUDA_SUCCESS;
    case UINT32:
    case INT32:
    case FLOAT:
        *bytes = (size_t)array.channels * 4;
        return CUDA_SUCCESS;
    default: /* of compressed or planar images, which have no elements of so many bytes */
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

/* An operand's side of a copy. False: it has more bytes than there are. */
#define PUT_OPERAND(to, side, operand, bytes)                                                      \
    ((operand)->type == OPERAND_ARRAY                                                              \
         ? ((to)->side##MemoryType = CU_MEMORYTYPE_ARRAY,                                          \
            (to)->side##Array = (CUarray)(uintptr_t)(operand)->where[0],                           \
            (to)->side##Y = (operand)->where[2], (to)->side##Z = (operand)->where[3],              \
            !__builtin_mul_overflow((operand)->where[1], bytes, &(to)->side##XInBytes))            \
         : ((to)->side##MemoryType = CU_MEMORYTYPE_UNIFIED,                                        \
            (to)->side##Device = (operand)->where[0], (to)->side##Height = (operand)->where[2],    \
            !__builtin_mul_overflow((operand)->where[1], bytes, &(to)->side##Pitch)))

static bool is_operand(const CUmemcpy3DOperand *operand)
{
    return operand->type == OPERAND_POINTER || operand->type == OPERAND_ARRAY;
}

static CUresult copy_operation(const CUDA_MEMCPY3D_BATCH_OP *of, CUstream stream,
                               CUresult (*copy)(const CUDA_MEMCPY3D *, CUstream))
{
    size_t bytes = 1, other;
    CUDA_MEMCPY3D as = {.Height = of->extent.height, .Depth = of->extent.depth};
    CUresult result;

    if (!is_operand(&of->src) || !is_operand(&of->dst) || !is_order(of->srcAccessOrder) ||
        !of->extent.width || !of->extent.height || !of->extent.depth)
        return CUDA_ERROR_INVALID_VALUE;
    result = element_bytes(&of->src, &bytes);
    other = bytes;
    if (result == CUDA_SUCCESS)
        result = element_bytes(&of->dst, &other);
    if (result == CUDA_SUCCESS && of->src.type == OPERAND_ARRAY && other != bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    if (!PUT_OPERAND(&as, src, &of->src, other) || !PUT_OPERAND(&as, dst, &of->dst, other) ||
        __builtin_mul_overflow(of->extent.width, other, &as.WidthInBytes))
        return CUDA_ERROR_INVALID_VALUE;
    return copy(&as, stream);
}

static CUresult copy_operations(const CUDA_MEMCPY3D_BATCH_OP *list, size_t count, size_t *failed,
                                unsigned long long flags, CUstream stream,
                                CUresult (*copy)(const CUDA_MEMCPY3D *, CUstream))
{
    CUresult result = connect_state();

    if (failed)
        *failed = NO_COPY;
    if (result == CUDA_SUCCESS && (!list || !count || flags))
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = copy_operation(&list[i], stream, copy);
        if (result != CUDA_SUCCESS && failed)
            *failed = i;
    }
    return result;
}

#define BATCH_3D_TELLING(name, copy)                                                               \
    EXPORT CUresult name(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed,               \
                         unsigned long long flags, CUstream stream);                               \
    CUresult name(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed,                      \
                  unsigned long long flags, CUstream stream)                                       \
    {                                                                                              \
        return copy_operations(list, count, failed, flags, stream, copy);                          \
    }
BATCH_3D_TELLING(cuMemcpy3DBatchAsync, cuMemcpy3DAsync_v2)
BATCH_3D_TELLING(cuMemcpy3DBatchAsync_ptsz, cuMemcpy3DAsync_v2_ptsz)

#define BATCH_3D(name, copy)                                                                       \
    EXPORT CUresult name(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags,     \
                         CUstream stream);                                                         \
    CUresult name(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags,            \
                  CUstream stream)                                                                 \
    {                                                                                              \
        return copy_operations(list, count, NULL, flags, stream, copy);                            \
    }
BATCH_3D(cuMemcpy3DBatchAsync_v2, cuMemcpy3DAsync_v2)
BATCH_3D(cuMemcpy3DBatchAsync_v2_ptsz, cuMemcpy3DAsync_v2_ptsz)

#define WITH_ATTRIBUTES_3D(name, copy)                                                             \
    EXPORT CUresult name(CUDA_MEMCPY3D_BATCH_OP *of, unsigned long long flags, CUstream stream);   \
    CUresult name(CUDA_MEMCPY3D_BATCH_OP *of, unsigned long long flags, CUstream stream)           \
    {                                                                                              \
        return copy_operations(of, 1, NULL, flags, stream, copy);                                  \
    }
WITH_ATTRIBUTES_3D(cuMemcpy3DWithAttributesAsync, cuMemcpy3DAsync_v2)
WITH_ATTRIBUTES_3D(cuMemcpy3DWithAttributesAsync_ptsz, cuMemcpy3DAsync_v2_ptsz)

/* The forms of the first CUDA, whose numbers and addresses have 32 bits. */
#define SIDE(side)                                                                                 \
    .side##XInBytes = of->side##XInBytes, .side##Y = of->side##Y,                                  \
    .side##MemoryType = of->side##MemoryType, .side##Host = of->side##Host,                        \
    .side##Device = of->side##Device, .side##Array = of->side##Array,                              \
    .side##Pitch = of->side##Pitch

static CUDA_MEMCPY2D widen_2d(const CUDA_MEMCPY2D_v1 *of)
{
    return (CUDA_MEMCPY2D){SIDE(src), SIDE(dst), .WidthInBytes = of->WidthInBytes,
                           .Height = of->Height};
}

static CUDA_MEMCPY3D widen_3d(const CUDA_MEMCPY3D_v1 *of)
{
    return (CUDA_MEMCPY3D){SIDE(src),
                           SIDE(dst),
                           .srcZ = of->srcZ,
                           .srcLOD = of->srcLOD,
                           .srcHeight = of->srcHeight,
                           .dstZ = of->dstZ,
                           .dstLOD = of->dstLOD,
                           .dstHeight = of->dstHeight,
                           .WidthInBytes = of->WidthInBytes,
                           .Height = of->Height,
                           .Depth = of->Depth};
}

#define NARROW(name, type, wide_type, widen, copy)                                                 \
    EXPORT CUresult name(const type *of);                                                          \
    CUresult name(const type *of)                                                                  \
    {                                                                                              \
        wide_type wide;                                                                            \
                                                                                                   \
        if (!of)                                                                                   \
            return CUDA_ERROR_INVALID_VALUE;                                                       \
        wide = widen(of);                                                                          \
        return copy(&wide);                                                                        \
    }
#define NARROW_ASYNC(name, type, wide_type, widen, copy)                                           \
    EXPORT CUresult name(const type *of, CUstream stream);                                         \
    CUresult name(const type *of, CUstream stream)                                                 \
    {                                                                                              \
        wide_type wide;                                                                            \
                                                                                                   \
        if (!of)                                                                                   \
            return CUDA_ERROR_INVALID_VALUE;                                                       \
        wide = widen(of);                                                                          \
        return copy(&wide, stream);                                                                \
    }
NARROW(cuMemcpy2D, CUDA_MEMCPY2D_v1, CUDA_MEMCPY2D, widen_2d, cuMemcpy2D_v2)
NARROW(cuMemcpy2DUnaligned, CUDA_MEMCPY2D_v1, CUDA_MEMCPY2D, widen_2d, cuMemcpy2DUnaligned_v2)
NARROW_ASYNC(cuMemcpy2DAsync, CUDA_MEMCPY2D_v1, CUDA_MEMCPY2D, widen_2d, cuMemcpy2DAsync_v2)
NARROW(cuMemcpy3D, CUDA_MEMCPY3D_v1, CUDA_MEMCPY3D, widen_3d, cuMemcpy3D_v2)
NARROW_ASYNC(cuMemcpy3DAsync, CUDA_MEMCPY3D_v1, CUDA_MEMCPY3D, widen_3d, cuMemcpy3DAsync_v2)
