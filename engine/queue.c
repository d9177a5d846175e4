// SPDX-License-Identifier: MIT
#include "queue.h"

#include "control.h"
#include "display.h"
#include "engine.h"
#include "parking.h"

#include <errno.h>
#include <string.h>

static void grow_request_buf(struct engine *engine, uint64_t size)
{
    g_free(engine->request_buf);
    engine->request_buf_size = size;
    engine->request_buf = g_malloc(size);
}

/* 0, or the negative errno of pop. @truncated: the request is larger than the limit. */
static int pop_request(struct engine *engine, uint32_t queue, struct request *request,
                       bool *truncated)
{
    struct vgpu_transport *transport = engine->transport;
    struct vgpu_queue_pop pop = {
        .epoch = engine->epoch,
        .flags = engine->polling && queue == VGPU_QUEUE_CONTROL ? VGPU_POP_POLL : 0,
        .queue = queue,
        .buf = (uintptr_t)engine->request_buf,
        .buf_size = engine->request_buf_size,
    };
    int ret = transport->ops->pop(transport, &pop);

    if (ret == -EMSGSIZE) {
        if (pop.request_size > ENGINE_MAX_REQUEST)
            pop.flags |= VGPU_POP_TRUNCATE;
        else if (pop.request_size > engine->request_buf_size)
            grow_request_buf(engine, pop.request_size);
        pop.buf = (uintptr_t)engine->request_buf;
        pop.buf_size = engine->request_buf_size;
        ret = transport->ops->pop(transport, &pop);
    }
    if (ret < 0)
        return ret;

    *truncated = pop.request_size > engine->request_buf_size;
    memset(request, 0, sizeof(*request));
    request->data = engine->request_buf;
    request->size = MIN(pop.request_size, engine->request_buf_size);
    request->response_size = pop.response_size;
    request->epoch = engine->epoch;
    request->queue = queue;
    request->token = pop.token;
    if (request->size >= sizeof(request->hdr))
        memcpy(&request->hdr, request->data, sizeof(request->hdr));
    return 0;
}

static void process_request(struct engine *engine, const struct request *request, bool truncated)
{
    if (request->queue == VGPU_QUEUE_CURSOR) {
        /* Cursor commands have no answer. */
        if (!truncated)
            display_cursor_command(engine, request);
        g_byte_array_set_size(engine->response, 0);
        fence_push(&engine->fences, request, engine->response);
    } else if (parking_take(engine, request, truncated)) {
        return;
    } else if (truncated) {
        control_reject(engine, request, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
    } else {
        control_process(engine, request);
    }
}

int queue_run(struct engine *engine, uint32_t queue, unsigned int budget)
{
    if (queue == VGPU_QUEUE_CONTROL && fence_released(&engine->fences))
        parking_run(engine);

    for (unsigned int i = 0; i < budget; i++) {
        struct request request;
        bool truncated = false;
        int ret = pop_request(engine, queue, &request, &truncated);

        if (ret == -EAGAIN)
            return 0;
        if (ret == -ESTALE || ret == -EPROTO || ret == -ENOTCONN)
            return ret;
        /*
         * EMSGSIZE again: the guest has changed the chain in between. ENOMEM, EFAULT: this chain
         * has failed. There may be others that no kick will announce.
         */
        if (ret < 0)
            continue;
        engine->requests++;
        process_request(engine, &request, truncated);
    }
    return 1;
}
