// SPDX-License-Identifier: MIT
/*
 * Copies, fills and pages that move take time, by whichever function. calls.c exports them, and
 * remembers what they were given. ptx/effects.c copies, if memory has content.
 */
#include "timing.h"

#include <string.h>

#include "ptx/content.h"

enum mover { MOVE_HOST, MOVE_PAGES, MOVE_INSIDE, MOVE_FILL };

#define INSIDE_SPEED 500

/* Both are the card's, and one device's. */
static bool places_are_inside(CUdeviceptr to, CUdeviceptr from, uint64_t bytes)
{
    CUdeviceptr base;

    (void)bytes;
    return fake_size_of(to, &base) && fake_size_of(from, &base) &&
           fake_device_at(to) == fake_device_at(from);
}

static bool places_are_inside_all(const CUdeviceptr *to, const CUdeviceptr *from,
                                  const size_t *sizes, size_t count)
{
    return to && from && sizes && count && places_are_inside(*to, *from, *sizes);
}

#define IS_HOST(type) ((type) != CU_MEMORYTYPE_DEVICE && (type) != CU_MEMORYTYPE_ARRAY)
#define MOVER(copy)                                                                                \
    (IS_HOST((copy)->srcMemoryType) || IS_HOST((copy)->dstMemoryType) ? MOVE_HOST : MOVE_INSIDE)

#define SHAPE(type, name, size)                                                                    \
    static uint64_t bytes_##name(const type *copy)                                                 \
    {                                                                                              \
        return copy ? (uint64_t)(size) : 0;                                                        \
    }
SHAPE(CUDA_MEMCPY2D, 2d, copy->WidthInBytes * copy->Height)
SHAPE(CUDA_MEMCPY2D_v1, 2d_v1, copy->WidthInBytes * copy->Height)
SHAPE(CUDA_MEMCPY3D, 3d, copy->WidthInBytes * copy->Height * copy->Depth)
SHAPE(CUDA_MEMCPY3D_v1, 3d_v1, copy->WidthInBytes * copy->Height * copy->Depth)
SHAPE(CUDA_MEMCPY3D_PEER, peer, copy->copy.WidthInBytes * copy->copy.Height * copy->copy.Depth)
SHAPE(CUDA_MEMCPY3D_BATCH_OP, operation,
      copy->extent.width * copy->extent.height * copy->extent.depth)

#define OF(what, copy)                                                                             \
    _Generic((copy),                                                                               \
        const CUDA_MEMCPY2D *: what##_2d,                                                          \
        const CUDA_MEMCPY2D_v1 *: what##_2d_v1,                                                    \
        const CUDA_MEMCPY3D *: what##_3d,                                                          \
        const CUDA_MEMCPY3D_v1 *: what##_3d_v1,                                                    \
        const CUDA_MEMCPY3D_PEER *: what##_peer,                                                   \
        CUDA_MEMCPY3D_BATCH_OP *: what##_operation)(copy)
#define BYTES_OF(copy) OF(bytes, copy)
#define MOVER_OF(copy) OF(mover, copy)

#define KIND(type, name, which)                                                                    \
    static enum mover mover_##name(const type *copy)                                               \
    {                                                                                              \
        return copy ? which : MOVE_HOST;                                                           \
    }
KIND(CUDA_MEMCPY2D, 2d, MOVER(copy))
KIND(CUDA_MEMCPY2D_v1, 2d_v1, MOVER(copy))
KIND(CUDA_MEMCPY3D, 3d, MOVER(copy))
KIND(CUDA_MEMCPY3D_v1, 3d_v1, MOVER(copy))
KIND(CUDA_MEMCPY3D_PEER, peer, MOVE_HOST)
KIND(CUDA_MEMCPY3D_BATCH_OP, operation, MOVE_HOST)

static uint64_t bytes_of_operations(const CUDA_MEMCPY3D_BATCH_OP *list, size_t count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; list && i < count; i++)
        bytes += bytes_operation(&list[i]);
    return bytes;
}

static enum mover mover_of_operations(const CUDA_MEMCPY3D_BATCH_OP *list, size_t count)
{
    (void)list;
    (void)count;
    return MOVE_HOST;
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

static CUresult move(const char *name, CUstream stream, bool per_thread, bool is_async,
                     enum mover mover, uint64_t bytes)
{
    static const unsigned int speeds[] = {FAKE_COPIES, FAKE_COPIES, INSIDE_SPEED, FAKE_FILLS};
    bool is_out = strstr(name, "DtoH") || strstr(name, "AtoH");
    struct model_op op = {.kind = TIMING_WORK, .length_ns = (double)(bytes / speeds[mover])};
    CUresult result;

    op.engine = mover == MOVE_INSIDE || mover == MOVE_FILL ? MODEL_COMPUTE
                : is_out                                   ? MODEL_COPY_OUT
                                                           : MODEL_COPY;
    result = timing_submit(stream, per_thread, &op);
    return result == CUDA_SUCCESS && !is_async ? timing_await(stream, per_thread) : result;
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define MOVE(name, own_default, is_async, on_stream, mover, bytes, parameters, ...)                \
    static CUresult take_##name parameters                                                         \
    {                                                                                              \
        return move(#name, on_stream, own_default, is_async, mover, bytes);                        \
    }
#define LINEAR(name, own_default, mover, parameters, to, from, bytes)                              \
    static CUresult take_##name parameters                                                         \
    {                                                                                              \
        return move(#name, NULL, own_default, false, mover, bytes);                                \
    }
#include "moves.inc"
#undef MOVE
#undef LINEAR

static const struct {
    const char *name;
    void *function;
} moves[] = {
#define MOVE(name, ...)   {#name, (void *)take_##name},
#define LINEAR(name, ...) {#name, (void *)take_##name},
#include "moves.inc"
};

typedef long any_function(long, long, long, long, long, long, long, long, long, long, long, long,
                          long, long, long, long);

static long take_time(const char *name, const long a[FAKE_ARGUMENTS])
{
    for (unsigned int i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
        if (!strcmp(moves[i].name, name))
            return ((any_function *)moves[i].function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6],
                                                       a[7], a[8], a[9], a[10], a[11], a[12], a[13],
                                                       a[14], a[15]);
    return 0;
}

/* 0: also if it is none that moves anything. */
long fake_move(const char *name, const long arguments[FAKE_ARGUMENTS])
{
    bool per_thread = false;
    CUstream stream = NULL;
    struct effect *effect = effect_of_move(name, arguments, &stream, &per_thread);
    long result;

    if (!effect)
        return take_time(name, arguments);
    effect_begin(effect);
    result = take_time(name, arguments);
    return (long)effect_end(stream, per_thread, (CUresult)result);
}
