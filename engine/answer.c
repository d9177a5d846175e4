// SPDX-License-Identifier: MIT
#include "answer.h"

#include "context.h"
#include "engine.h"

#include <errno.h>
#include <string.h>

void *answer_begin(struct engine *engine, size_t size)
{
    g_byte_array_set_size(engine->response, (guint)size);
    memset(engine->response->data, 0, size);
    return engine->response->data;
}

/*
 * Linux signals all earlier fences of a timeline with a later one. So an error, which needs no GPU,
 * still has to wait for the requests pending before it.
 */
static void send_error(struct engine *engine, const struct request *request)
{
    struct context *context = context_find(engine, request->hdr.ctx_id);

    if (context && context->withholds) {
        if (fence_add_withheld(&engine->fences, request, engine->response))
            return;
        /* There are more than there is room for: the guest gets them all. */
        context_give_answers(engine, context);
    }
    if (!fence_queue_behind(&engine->fences, request, engine->response))
        fence_push(&engine->fences, request, engine->response);
}

void answer_send(struct engine *engine, const struct request *request)
{
    struct virtio_gpu_ctrl_hdr *response = (void *)engine->response->data;
    const uint32_t ring_fence = VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX;
    uint64_t id;
    int ret;

    if ((request->hdr.flags & ring_fence) != ring_fence) {
        fence_push(&engine->fences, request, engine->response);
        return;
    }
    if (response->type >= VIRTIO_GPU_RESP_ERR_UNSPEC) {
        send_error(engine, request);
        return;
    }
    /* Added before virglrenderer knows of it: its thread may be faster than this one. */
    id = fence_add(&engine->fences, request, engine->response);
    ret = context_create_fence(engine, request->hdr.ctx_id, request->hdr.ring_idx, id);
    if (ret != 0 && fence_take_back(&engine->fences, id)) {
        response->type = ret == -ENOENT ? VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID
                                        : VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
        send_error(engine, request);
    }
}
