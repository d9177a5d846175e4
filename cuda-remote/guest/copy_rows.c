// SPDX-License-Identifier: MIT
/*
 * Copies of rows: between memory of the program, of the GPU, and arrays. Rows of memory that is the
 * program's alone are sent without the gaps between them.
 */
#include "remote.h"

#include <stdlib.h>
#include <string.h>

/* More is sent in several copies, so that no copy needs its size a second time. */
#define SENT_AT_ONCE (16u << 20)

/* An end of a copy, in whatever form the program gave it. */
struct end {
    CUmemorytype type;
    uint64_t host, device, array, context;
    size_t x, y, z, lod, pitch, height;
};

struct copy {
    unsigned int number;
    struct end from, to;
    size_t width, height, depth;
    CUstream stream;
};

/* From the first row's first byte to the last one's last. False: no memory is so large. */
static bool span_of(const struct copy *copy, size_t pitch, size_t height, size_t *span)
{
    size_t rows;

    return !__builtin_mul_overflow(copy->depth - 1, height, &rows) &&
           !__builtin_add_overflow(rows, copy->height - 1, &rows) &&
           !__builtin_mul_overflow(rows, pitch, span) &&
           !__builtin_add_overflow(*span, copy->width, span);
}

/* The copy is of at least one byte. */
static CUresult find_place(const struct copy *copy, const struct end *end, struct hand_place *place)
{
    size_t pitch = end->pitch ? end->pitch : copy->width;
    size_t height = end->height ? end->height : copy->height, span;
    uint64_t at = end->type == CU_MEMORYTYPE_HOST ? end->host : end->device;

    if (end->type < CU_MEMORYTYPE_HOST || end->type > CU_MEMORYTYPE_UNIFIED)
        return CUDA_ERROR_INVALID_VALUE;
    *place = (struct hand_place){
        .pitch = pitch, .height = height, .context = object_to_number(end->context)};
    if (end->type == CU_MEMORYTYPE_ARRAY) {
        *place = (struct hand_place){.kind = HAND_PLACE_ARRAY,
                                     .where = object_to_number(end->array),
                                     .x = end->x,
                                     .y = end->y,
                                     .z = end->z,
                                     .lod = end->lod,
                                     .context = place->context};
        return CUDA_SUCCESS;
    }
    if ((copy->height > 1 && pitch < copy->width) || (copy->depth > 1 && height < copy->height) ||
        !span_of(copy, pitch, height, &span))
        return CUDA_ERROR_INVALID_VALUE;
    at += (end->z * height + end->y) * pitch + end->x;
    place->where = at;
    if (shared_contains((const void *)(uintptr_t)at, span))
        place->kind = HAND_PLACE_SHARED;
    else if (end->type == CU_MEMORYTYPE_DEVICE || place_is_device(at))
        place->kind = HAND_PLACE_DEVICE;
    else
        place->kind = HAND_PLACE_SENT;
    return end->type == CU_MEMORYTYPE_HOST && place->kind == HAND_PLACE_DEVICE
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

/* Between the program's rows and those that are sent. */
static void move_rows(const struct copy *copy, const struct hand_place *place, uint8_t *sent,
                      bool is_from)
{
    for (size_t z = 0; z < copy->depth; z++)
        for (size_t y = 0; y < copy->height; y++, sent += copy->width) {
            uint8_t *row =
                (uint8_t *)(uintptr_t)place->where + (z * place->height + y) * place->pitch;

            if (is_from)
                memcpy(sent, row, copy->width);
            else
                memcpy(row, sent, copy->width);
        }
}

static CUresult exchange_copy(const struct copy *copy, const struct hand_copy *head)
{
    size_t bytes = copy->width * copy->height * copy->depth;
    struct exchange ask = {
        .number = copy->number, .head = head, .head_bytes = sizeof(*head), .keeps_failed = true};
    bool is_from = head->from.kind == HAND_PLACE_SENT, is_to = head->to.kind == HAND_PLACE_SENT;
    uint8_t *sent = is_from || is_to ? malloc(bytes) : NULL;
    CUresult result;

    if ((is_from || is_to) && !sent)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (is_from) {
        move_rows(copy, &head->from, sent, true);
        exchange_in(&ask, sent, bytes);
    }
    if (is_to)
        exchange_out(&ask, sent, bytes);
    result = exchange_run(&ask);
    if (is_to && result == CUDA_SUCCESS)
        move_rows(copy, &head->to, sent, false);
    free(sent);
    return result;
}

static CUresult copy_at_once(const struct copy *copy)
{
    struct hand_copy head = {.width = copy->width,
                             .height = copy->height,
                             .depth = copy->depth,
                             .stream = object_to_number((uintptr_t)copy->stream)};
    CUresult result = find_place(copy, &copy->from, &head.from);

    if (result == CUDA_SUCCESS)
        result = find_place(copy, &copy->to, &head.to);
    return result == CUDA_SUCCESS ? exchange_copy(copy, &head) : result;
}

/* Whether rows are sent, which are so many that they go a few at a time. */
static bool is_large(const struct copy *copy, CUresult *result)
{
    struct hand_place from, to;
    size_t rows, bytes;

    *result = find_place(copy, &copy->from, &from);
    if (*result == CUDA_SUCCESS)
        *result = find_place(copy, &copy->to, &to);
    if (*result != CUDA_SUCCESS)
        return false;
    return (from.kind == HAND_PLACE_SENT || to.kind == HAND_PLACE_SENT) &&
           (__builtin_mul_overflow(copy->height, copy->depth, &rows) ||
            __builtin_mul_overflow(rows, copy->width, &bytes) || bytes > SENT_AT_ONCE);
}

static CUresult copy_rows(const struct copy *copy)
{
    size_t rows_at_once = copy->width < SENT_AT_ONCE ? SENT_AT_ONCE / (copy->width + 1) : 1;
    CUresult result = connect_state();

    if (result != CUDA_SUCCESS || !copy->width || !copy->height || !copy->depth)
        return result;
    if (!is_large(copy, &result))
        return result == CUDA_SUCCESS ? copy_at_once(copy) : result;
    for (size_t z = 0; z < copy->depth; z++)
        for (size_t y = 0; y < copy->height && result == CUDA_SUCCESS; y += rows_at_once) {
            struct copy part = *copy;

            part.from.y += y;
            part.from.z += z;
            part.to.y += y;
            part.to.z += z;
            part.from.height = copy->from.height ? copy->from.height : copy->height;
            part.to.height = copy->to.height ? copy->to.height : copy->height;
            part.height = copy->height - y < rows_at_once ? copy->height - y : rows_at_once;
            part.depth = 1;
            result = copy_at_once(&part);
        }
    return result;
}

#define END(side, height_is, ...)                                                                  \
    {.type = of->side##MemoryType,                                                                 \
     .host = (uintptr_t)of->side##Host,                                                            \
     .device = of->side##Device,                                                                   \
     .array = (uintptr_t)of->side##Array,                                                          \
     .x = of->side##XInBytes,                                                                      \
     .y = of->side##Y,                                                                             \
     .pitch = of->side##Pitch,                                                                     \
     .height = height_is,                                                                          \
     __VA_ARGS__}

static CUresult copy_2d(unsigned int number, const CUDA_MEMCPY2D *of, CUstream stream)
{
    if (!of)
        return CUDA_ERROR_INVALID_VALUE;
    return copy_rows(&(struct copy){.number = number,
                                    .from = END(src, 0),
                                    .to = END(dst, 0),
                                    .width = of->WidthInBytes,
                                    .height = of->Height,
                                    .depth = 1,
                                    .stream = stream});
}

/* @has_contexts: in the reserved pointers there are the contexts of both ends. */
static struct copy read_3d(unsigned int number, const CUDA_MEMCPY3D *of, CUstream stream,
                           bool has_contexts)
{
    return (struct copy){.number = number,
                         .from = END(src, of->srcHeight, .z = of->srcZ, .lod = of->srcLOD,
                                     .context = has_contexts ? (uintptr_t)of->reserved0 : 0),
                         .to = END(dst, of->dstHeight, .z = of->dstZ, .lod = of->dstLOD,
                                   .context = has_contexts ? (uintptr_t)of->reserved1 : 0),
                         .width = of->WidthInBytes,
                         .height = of->Height,
                         .depth = of->Depth,
                         .stream = stream};
}

static CUresult copy_3d(unsigned int number, const CUDA_MEMCPY3D *of, CUstream stream,
                        bool has_contexts)
{
    struct copy copy;

    if (!of)
        return CUDA_ERROR_INVALID_VALUE;
    copy = read_3d(number, of, stream, has_contexts);
    return copy_rows(&copy);
}

CUresult copy_for_graph(const CUDA_MEMCPY3D *of, struct hand_copy *head)
{
    const struct copy copy = read_3d(0, of, NULL, false);
    CUresult result;

    *head = (struct hand_copy){.width = copy.width, .height = copy.height, .depth = copy.depth};
    if (!copy.width || !copy.height || !copy.depth)
        return CUDA_ERROR_INVALID_VALUE;
    result = find_place(&copy, &copy.from, &head->from);
    if (result == CUDA_SUCCESS)
        result = find_place(&copy, &copy.to, &head->to);
    if (result == CUDA_SUCCESS &&
        (head->from.kind == HAND_PLACE_SENT || head->to.kind == HAND_PLACE_SENT))
        result = CUDA_ERROR_NOT_SUPPORTED;
    return result;
}

#define COPY(name, type, ...)                                                                      \
    EXPORT CUresult name(const type *of);                                                          \
    CUresult name(const type *of)                                                                  \
    {                                                                                              \
        CUstream stream = NULL;                                                                    \
        unsigned int number = CALL_##name;                                                         \
                                                                                                   \
        return __VA_ARGS__;                                                                        \
    }
#define COPY_ASYNC(name, type, ...)                                                                \
    EXPORT CUresult name(const type *of, CUstream stream);                                         \
    CUresult name(const type *of, CUstream stream)                                                 \
    {                                                                                              \
        unsigned int number = CALL_##name;                                                         \
                                                                                                   \
        return __VA_ARGS__;                                                                        \
    }
COPY(cuMemcpy2D_v2, CUDA_MEMCPY2D, copy_2d(number, of, stream))
COPY(cuMemcpy2D_v2_ptds, CUDA_MEMCPY2D, copy_2d(number, of, stream))
COPY(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, copy_2d(number, of, stream))
COPY(cuMemcpy2DUnaligned_v2_ptds, CUDA_MEMCPY2D, copy_2d(number, of, stream))
COPY_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, copy_2d(number, of, stream))
COPY_ASYNC(cuMemcpy2DAsync_v2_ptsz, CUDA_MEMCPY2D, copy_2d(number, of, stream))
COPY(cuMemcpy3D_v2, CUDA_MEMCPY3D, copy_3d(number, of, stream, false))
COPY(cuMemcpy3D_v2_ptds, CUDA_MEMCPY3D, copy_3d(number, of, stream, false))
COPY_ASYNC(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, copy_3d(number, of, stream, false))
COPY_ASYNC(cuMemcpy3DAsync_v2_ptsz, CUDA_MEMCPY3D, copy_3d(number, of, stream, false))
COPY(cuMemcpy3DPeer, CUDA_MEMCPY3D_PEER, copy_3d(number, &of->copy, stream, true))
COPY(cuMemcpy3DPeer_ptds, CUDA_MEMCPY3D_PEER, copy_3d(number, &of->copy, stream, true))
COPY_ASYNC(cuMemcpy3DPeerAsync, CUDA_MEMCPY3D_PEER, copy_3d(number, &of->copy, stream, true))
COPY_ASYNC(cuMemcpy3DPeerAsync_ptsz, CUDA_MEMCPY3D_PEER, copy_3d(number, &of->copy, stream, true))
