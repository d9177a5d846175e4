// SPDX-License-Identifier: MIT
/* Copies of rows. What the program sends is copied before the driver reads it; every other address
 * is checked over all that lies between the first row and the last. */
#include "hand.h"
#include "worker.h"

#include <string.h>

#include "numbers.h"

/* From the first row's first byte to the last one's last. */
static bool span_of(const struct hand_copy *copy, const struct hand_place *place, uint64_t *span)
{
    uint64_t rows;

    return !__builtin_mul_overflow(copy->depth - 1, place->height, &rows) &&
           !__builtin_add_overflow(rows, copy->height - 1, &rows) &&
           !__builtin_mul_overflow(rows, place->pitch, span) &&
           !__builtin_add_overflow(*span, copy->width, span);
}

/* An end as the driver takes it. */
struct end {
    CUmemorytype type;
    void *host, *array, *context;
    CUdeviceptr device;
    uint64_t pitch, height;
};

static CUresult find_end(struct request *request, const struct hand_copy *copy,
                         const struct hand_place *place, void *sent, struct end *end)
{
    uint64_t span;

    *end = (struct end){.type = CU_MEMORYTYPE_HOST, .pitch = place->pitch, .height = place->height};
    if (!object_find(OBJECT_CUcontext, place->context, &end->context))
        return CUDA_ERROR_INVALID_CONTEXT;
    switch (place->kind) {
    case HAND_PLACE_SENT:
        end->host = sent;
        end->pitch = copy->width;
        end->height = copy->height;
        return CUDA_SUCCESS;
    case HAND_PLACE_ARRAY:
        end->type = CU_MEMORYTYPE_ARRAY;
        return object_find(OBJECT_CUarray, place->where, &end->array) && end->array
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_HANDLE;
    case HAND_PLACE_SHARED:
        end->host = (void *)(uintptr_t)place->where;
        return span_of(copy, place, &span) && request_uses(request, place->where, span)
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    case HAND_PLACE_DEVICE:
        end->type = CU_MEMORYTYPE_DEVICE;
        end->device = place->where;
        return span_of(copy, place, &span) && place_is_usable(request, place->where, span)
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    default:
        request->is_broken = true;
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* The driver's structure, of three dimensions; of two it has a part of these. */
CUresult copy_make(struct request *request, const struct hand_copy *copy, void *in, void *out,
                   CUDA_MEMCPY3D *to)
{
    struct end from, into;
    CUresult result = find_end(request, copy, &copy->from, in, &from);

    if (result == CUDA_SUCCESS)
        result = find_end(request, copy, &copy->to, out, &into);
    if (result != CUDA_SUCCESS)
        return result;
    *to = (CUDA_MEMCPY3D){.srcXInBytes = copy->from.x,
                          .srcY = copy->from.y,
                          .srcZ = copy->from.z,
                          .srcLOD = copy->from.lod,
                          .srcMemoryType = from.type,
                          .srcHost = from.host,
                          .srcDevice = from.device,
                          .srcArray = from.array,
                          .reserved0 = from.context,
                          .srcPitch = from.pitch,
                          .srcHeight = from.height,
                          .dstXInBytes = copy->to.x,
                          .dstY = copy->to.y,
                          .dstZ = copy->to.z,
                          .dstLOD = copy->to.lod,
                          .dstMemoryType = into.type,
                          .dstHost = into.host,
                          .dstDevice = into.device,
                          .dstArray = into.array,
                          .reserved1 = into.context,
                          .dstPitch = into.pitch,
                          .dstHeight = into.height,
                          .WidthInBytes = copy->width,
                          .Height = copy->height,
                          .Depth = copy->depth};
    return CUDA_SUCCESS;
}

static CUresult call_2d(void *function, const CUDA_MEMCPY3D *of, void *stream, bool has_stream)
{
    const CUDA_MEMCPY2D copy = {.srcXInBytes = of->srcXInBytes,
                                .srcY = of->srcY,
                                .srcMemoryType = of->srcMemoryType,
                                .srcHost = of->srcHost,
                                .srcDevice = of->srcDevice,
                                .srcArray = of->srcArray,
                                .srcPitch = of->srcPitch,
                                .dstXInBytes = of->dstXInBytes,
                                .dstY = of->dstY,
                                .dstMemoryType = of->dstMemoryType,
                                .dstHost = of->dstHost,
                                .dstDevice = of->dstDevice,
                                .dstArray = of->dstArray,
                                .dstPitch = of->dstPitch,
                                .WidthInBytes = of->WidthInBytes,
                                .Height = of->Height};

    return has_stream ? ((CUresult(*)(const CUDA_MEMCPY2D *, void *))function)(&copy, stream)
                      : ((CUresult(*)(const CUDA_MEMCPY2D *))function)(&copy);
}

static bool is_async(unsigned int number)
{
    return strstr(signatures[number].name, "Async") != NULL;
}

static CUresult call_driver(unsigned int number, const CUDA_MEMCPY3D *of, void *stream)
{
    void *function = driver_function(number);

    if (!function)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (strstr(signatures[number].name, "2D"))
        return call_2d(function, of, stream, is_async(number));
    return is_async(number) ? ((CUresult(*)(const CUDA_MEMCPY3D *, void *))function)(of, stream)
                            : ((CUresult(*)(const CUDA_MEMCPY3D *))function)(of);
}

/* Room in the answer for what @to is sent, and what @from has sent. False: the client broke the
 * rules, or there is no memory. */
static bool take_rows(struct request *request, const struct hand_copy *copy, void **in, void **out)
{
    size_t at = request->flags & RECORD_BULK ? 0 : sizeof(*copy);
    uint64_t bytes;

    if (copy->from.kind != HAND_PLACE_SENT && copy->to.kind != HAND_PLACE_SENT)
        return true;
    if (__builtin_mul_overflow(copy->height, copy->depth, &bytes) ||
        __builtin_mul_overflow(bytes, copy->width, &bytes))
        return false;
    if (copy->from.kind == HAND_PLACE_SENT)
        *in = (void *)request_part(request, &at, bytes);
    if (copy->to.kind == HAND_PLACE_SENT) {
        if (request->flags & RECORD_BULK)
            request->out_most = signature_align(bytes);
        *out = request_answer(request, bytes);
    }
    return (*in || copy->from.kind != HAND_PLACE_SENT) &&
           (*out || copy->to.kind != HAND_PLACE_SENT);
}

CUresult hand_copy(struct request *request)
{
    const struct hand_copy *copy = (const void *)request->head;
    void *in = NULL, *out = NULL, *stream;
    CUDA_MEMCPY3D of;
    CUresult result;

    if (request->head_bytes < sizeof(*copy) || !copy->width || !copy->height || !copy->depth) {
        request->is_broken = true;
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!object_find(OBJECT_CUstream, copy->stream, &stream))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!take_rows(request, copy, &in, &out))
        return CUDA_ERROR_OUT_OF_MEMORY;
    request->makes_objects = false;
    if ((in || out) && is_async(request->number) && stream_is_capturing(request->number, stream))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    result = copy_make(request, copy, in, out, &of);
    if (result == CUDA_SUCCESS)
        result = call_driver(request->number, &of, stream);
    /* What is copied to memory of ours is there before it is sent. */
    return result == CUDA_SUCCESS && out && is_async(request->number)
               ? stream_await(request->number, stream)
               : result;
}
