// SPDX-License-Identifier: MIT
#include "transfer.h"

#include <stdlib.h>

#include "fronts.h"
#include "vault.h"

static CUstream find_stream(const struct transfer *transfer, CUcontext context)
{
    for (unsigned int i = 0; i < transfer->count; i++)
        if (transfer->streams[i].context == context)
            return transfer->streams[i].stream;
    return NULL;
}

/* In the current context. */
static CUstream make_stream(struct transfer *transfer, CUcontext context)
{
    struct transfer_stream *streams =
        realloc(transfer->streams, (transfer->count + 1) * sizeof(*streams));
    CUstream stream;

    if (!streams)
        return NULL;
    transfer->streams = streams;
    if (CARD(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        return NULL;
    streams[transfer->count++] = (struct transfer_stream){context, stream};
    return stream;
}

bool transfer_enter(struct transfer *transfer, CUcontext context)
{
    if (transfer->context == context)
        return true;
    transfer->context = NULL;
    if (CARD(cuCtxSetCurrent, context) != CUDA_SUCCESS)
        return false;
    transfer->stream = find_stream(transfer, context);
    if (!transfer->stream)
        transfer->stream = make_stream(transfer, context);
    if (!transfer->stream)
        return false;
    transfer->context = context;
    return true;
}

/* What is on its way is awaited, so that nothing is written after its memory is gone. */
static bool mark_end(struct transfer *transfer, struct copy *copy)
{
    copy->context = transfer->context;
    if (CARD(cuEventCreate, &copy->event, 0) != CUDA_SUCCESS) {
        CARD(cuStreamSynchronize, transfer->stream);
        return false;
    }
    if (CARD(cuEventRecord, copy->event, transfer->stream) == CUDA_SUCCESS)
        return true;
    CARD(cuEventDestroy_v2, copy->event);
    CARD(cuStreamSynchronize, transfer->stream);
    return false;
}

bool transfer_out(struct transfer *transfer, struct copy *copy, CUdeviceptr from)
{
    return CARD(cuMemcpyDtoHAsync_v2, copy->piece->at, from, copy->piece->bytes,
                transfer->stream) == CUDA_SUCCESS &&
           mark_end(transfer, copy);
}

bool transfer_in(struct transfer *transfer, struct copy *copy, CUdeviceptr to)
{
    return CARD(cuMemcpyHtoDAsync_v2, to, copy->piece->at, copy->piece->bytes, transfer->stream) ==
               CUDA_SUCCESS &&
           mark_end(transfer, copy);
}

bool transfer_await(struct transfer *transfer, struct copy *copy)
{
    bool copied = transfer_enter(transfer, copy->context) &&
                  CARD(cuEventSynchronize, copy->event) == CUDA_SUCCESS;

    CARD(cuEventDestroy_v2, copy->event);
    return copied;
}

void transfer_close(struct transfer *transfer)
{
    for (unsigned int i = 0; i < transfer->count; i++) {
        CARD(cuCtxSetCurrent, transfer->streams[i].context);
        CARD(cuStreamDestroy_v2, transfer->streams[i].stream);
    }
    CARD(cuCtxSetCurrent, NULL);
    free(transfer->streams);
    *transfer = (struct transfer){0};
}
