// SPDX-License-Identifier: MIT
/*
 * Copies, fills, and pages of managed memory that move. Large ones are measured as launches are;
 * small ones, which are many, wait for nothing: they are part of the stream's batch if there is
 * one, and else are owed by what they should take. The functions are made from the table.
 */
#include "join.h"
#include "learn.h"
#include "meter.h"
#include "places.h"
#include "real.h"

/* What moves the memory, and where from. */
enum mover {
    MOVE_HOST,   /* from or to the host, or unknown: the copy engines */
    MOVE_PAGES,  /* between the host and the GPU, or unpacked */
    MOVE_INSIDE, /* on the GPU */
    MOVE_FILL,
};

/* Less is small. */
#define LARGE (1u << 20)
/* However small it is, the GPU has to take it up. */
#define LEAST_NS 1000u

/* Bytes for each nanosecond, until it was measured. */
static const unsigned int speeds[] = {
    [MOVE_HOST] = 12, [MOVE_PAGES] = 12, [MOVE_INSIDE] = 500, [MOVE_FILL] = 1000};

/* As keys of learn.h, which otherwise are of functions. */
static const char keys[MOVE_FILL + 1];

/* As argument_types.def has them. */
_Static_assert(sizeof(CUDA_MEMCPY2D) == 128 && sizeof(CUDA_MEMCPY2D_v1) == 96, "CUDA_MEMCPY2D");
_Static_assert(sizeof(CUDA_MEMCPY3D) == 200 && sizeof(CUDA_MEMCPY3D_v1) == 144, "CUDA_MEMCPY3D");
_Static_assert(sizeof(CUDA_MEMCPY3D_BATCH_OP) == 112, "CUDA_MEMCPY3D_BATCH_OP");
_Static_assert(sizeof(CUmemDecompressParams) == 64, "CUmemDecompressParams");

#define WHOLE(copy)      ((uint64_t)(copy)->WidthInBytes * (copy)->Height)
#define IS_OF_HOST(type) ((type) != CU_MEMORYTYPE_DEVICE && (type) != CU_MEMORYTYPE_ARRAY)
#define MOVER(copy, bytes)                                                                         \
    mover_between((copy)->dstMemoryType, (copy)->dstDevice, (copy)->srcMemoryType,                 \
                  (copy)->srcDevice, bytes)

/* What is only said to be an address may be of the host or of a GPU. */
static bool is_address(CUmemorytype type)
{
    return type == CU_MEMORYTYPE_UNIFIED || type == CU_MEMORYTYPE_DEVICE;
}

static enum mover mover_between(CUmemorytype to_type, CUdeviceptr to, CUmemorytype from_type,
                                CUdeviceptr from, uint64_t bytes)
{
    if (!IS_OF_HOST(to_type) && !IS_OF_HOST(from_type))
        return MOVE_INSIDE;
    return is_address(to_type) && is_address(from_type) && places_are_inside(to, from, bytes)
               ? MOVE_INSIDE
               : MOVE_HOST;
}

/* NULL is the driver's to refuse. */
#define SHAPE(type, name, bytes)                                                                   \
    static uint64_t bytes_of_##name(const type *copy)                                              \
    {                                                                                              \
        return copy ? (bytes) : 0;                                                                 \
    }                                                                                              \
    static enum mover mover_of_##name(const type *copy)                                            \
    {                                                                                              \
        return copy ? MOVER(copy, bytes) : MOVE_HOST;                                              \
    }
SHAPE(CUDA_MEMCPY2D, 2d, WHOLE(copy))
SHAPE(CUDA_MEMCPY2D_v1, 2d_v1, WHOLE(copy))
SHAPE(CUDA_MEMCPY3D, 3d, WHOLE(copy) * copy->Depth)
SHAPE(CUDA_MEMCPY3D_v1, 3d_v1, WHOLE(copy) * copy->Depth)

static uint64_t bytes_of_peer(const CUDA_MEMCPY3D_PEER *copy)
{
    return copy ? bytes_of_3d(&copy->copy) : 0;
}

/* From one GPU to another: by the copy engines. */
static enum mover mover_of_peer(const CUDA_MEMCPY3D_PEER *copy)
{
    return copy && is_address(copy->copy.dstMemoryType) && is_address(copy->copy.srcMemoryType) &&
                   places_are_inside(copy->copy.dstDevice, copy->copy.srcDevice,
                                     bytes_of_3d(&copy->copy))
               ? MOVE_INSIDE
               : MOVE_HOST;
}

static uint64_t bytes_of_operation(const CUDA_MEMCPY3D_BATCH_OP *op)
{
    return op ? (uint64_t)op->extent.width * op->extent.height * op->extent.depth : 0;
}

/* CU_MEMCPY_OPERAND_TYPE_POINTER, whose address is the first word. */
#define IS_POINTER(operand) ((operand).type == 1)

/* Of arrays it is not known which GPU they are of. */
static enum mover mover_of_operation(const CUDA_MEMCPY3D_BATCH_OP *op)
{
    return op && IS_POINTER(op->dst) && IS_POINTER(op->src) &&
                   places_are_inside(op->dst.where[0], op->src.where[0], bytes_of_operation(op))
               ? MOVE_INSIDE
               : MOVE_HOST;
}

#define OF(what, copy)                                                                             \
    _Generic((copy),                                                                               \
        const CUDA_MEMCPY2D *: what##_2d,                                                          \
        const CUDA_MEMCPY2D_v1 *: what##_2d_v1,                                                    \
        const CUDA_MEMCPY3D *: what##_3d,                                                          \
        const CUDA_MEMCPY3D_v1 *: what##_3d_v1,                                                    \
        const CUDA_MEMCPY3D_PEER *: what##_peer,                                                   \
        CUDA_MEMCPY3D_BATCH_OP *: what##_operation)(copy)
#define BYTES_OF(copy) OF(bytes_of, copy)
#define MOVER_OF(copy) OF(mover_of, copy)

static uint64_t bytes_of_operations(const CUDA_MEMCPY3D_BATCH_OP *list, size_t count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; list && i < count; i++)
        bytes += bytes_of_operation(&list[i]);
    return bytes;
}

static enum mover mover_of_operations(const CUDA_MEMCPY3D_BATCH_OP *list, size_t count)
{
    return list && count ? mover_of_operation(list) : MOVE_HOST;
}

static uint64_t bytes_of_sizes(const size_t *sizes, size_t count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; sizes && i < count; i++)
        bytes += sizes[i];
    return bytes;
}

static uint64_t bytes_unpacked(const CUmemDecompressParams *list, size_t count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; list && i < count; i++)
        bytes += list[i].dstNumBytes;
    return bytes;
}

/* True if it waits for nothing: it is small, not too much is owed, and it is not refused. */
static bool owe_move(struct launch *launch, uint64_t bytes)
{
    struct gpu *gpu;

    if (bytes >= LARGE)
        return false;
    gpu = gpu_current();
    if (gpu && !gpu->member)
        return false;
    return !gpu || !governor_member_class_is_metered(gpu->member, launch->class) ||
           meter_owe(gpu, launch);
}

/* False: it is refused. */
static bool begin_move(struct launch *launch, enum mover mover, uint64_t bytes)
{
    launch->class = mover == MOVE_HOST ? GOVERNOR_CLASS_COPY : GOVERNOR_CLASS_COMPUTE;
    launch->guess_ns = LEAST_NS + bytes / speeds[mover];
    launch->what = &keys[mover];
    launch->size = bytes;
    return owe_move(launch, bytes) || meter_before(launch);
}

/* After one that is not asynchronous the GPU has done all that the stream had. */
static CUresult end_move(struct launch *launch, bool is_async, CUresult result)
{
    if (launch->batch)
        meter_launched(launch, result == CUDA_SUCCESS);
    if (!is_async)
        meter_close(launch->stream, launch->per_thread);
    return result;
}

#define MOVE(name, own_default, is_async, on_stream, mover, bytes, parameters, ...)                \
    CUresult name parameters                                                                       \
    {                                                                                              \
        struct launch launch = {.stream = on_stream, .per_thread = own_default};                   \
                                                                                                   \
        if (real_depth)                                                                            \
            return REAL(name)(__VA_ARGS__);                                                        \
        if (!begin_move(&launch, mover, bytes))                                                    \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        return end_move(&launch, is_async, DRIVER(name, __VA_ARGS__));                             \
    }

/*
 * A copy that the caller waits for is made in pieces if it is from or to memory that the driver
 * takes through buffers of its own anyway. Each has its own turn: otherwise it would hold the copy
 * engine for as long as it is large, and a hard cap would be overdrawn by all of it.
 */
#define PIECE (16u << 20)

/* The driver knows device memory, and host memory that is locked. */
static bool is_pageable(CUdeviceptr at)
{
    CUmemorytype type = 0;

    return DRIVER(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) ==
           CUDA_ERROR_INVALID_VALUE;
}

static uint64_t piece_of(uint64_t bytes, CUdeviceptr to, CUdeviceptr from)
{
    const struct gpu *gpu = bytes > PIECE ? gpu_current() : NULL;

    return gpu && gpu->member && (is_pageable(from) || is_pageable(to)) ? PIECE : bytes;
}

#define ADDRESS(argument)  ((CUdeviceptr)(uintptr_t)(argument))
#define AT(argument, done) ((__typeof__(argument))(uintptr_t)(ADDRESS(argument) + (done)))

#define LINEAR(name, own_default, mover, parameters, to, from, bytes)                              \
    CUresult name parameters                                                                       \
    {                                                                                              \
        __typeof__(bytes) piece, done = 0;                                                         \
        CUresult result;                                                                           \
                                                                                                   \
        if (real_depth)                                                                            \
            return REAL(name)(to, from, bytes);                                                    \
        piece = (__typeof__(bytes))piece_of(bytes, ADDRESS(to), ADDRESS(from));                    \
        do {                                                                                       \
            struct launch launch = {.per_thread = own_default};                                    \
                                                                                                   \
            piece = piece < bytes - done ? piece : bytes - done;                                   \
            if (!begin_move(&launch, mover, piece))                                                \
                return CUDA_ERROR_SYSTEM_NOT_READY;                                                \
            result = end_move(&launch, false, DRIVER(name, AT(to, done), AT(from, done), piece));  \
            done += piece;                                                                         \
        } while (result == CUDA_SUCCESS && done < bytes);                                          \
        return result;                                                                             \
    }
#include "moves.inc"
