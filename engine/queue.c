// SPDX-License-Identifier: MIT
#include "queue.h"

#include "control.h"
#include "display.h"
#include "engine.h"
#include "parking.h"

#include <errno.h>
#include <string.h>

static int exchange_requests(struct engine *engine, struct queue_turn *turn, uint64_t *wanted)
{
    struct vgpu_transport *transport = engine->transport;
    struct vgpu_queue_answer *answer = fence_kept(&engine->fences);
    struct vgpu_queue_exchange x = {
        .flags = VGPU_EXCHANGE_EVENTS,
        .epoch = engine->epoch,
        .answers = (uintptr_t)answer,
        .nanswers = answer != NULL,
        .requests = (uintptr_t)turn->requests,
        .nrequests = turn->room,
        .buf = (uintptr_t)engine->request_buf,
        .buf_size = engine->request_buf_size,
        .queues = turn->queues,
        .poll_us = turn->poll_us,
        .wait_ms = turn->wait_ms,
        .wait_fd = engine->lifelines.fd,
    };
    int ret;

    if (engine->request_buf_size >= ENGINE_MAX_REQUEST)
        x.flags |= VGPU_EXCHANGE_TRUNCATE;
    ret = transport->ops->exchange(transport, &x);
    if (ret < 0)
        return ret;
    fence_kept_done(&engine->fences);
    turn->queues = x.queues;
    turn->count = x.nrequests;
    turn->event = x.event;
    turn->state = x.state;
    *wanted = x.wanted;
    return 0;
}

int queue_take(struct engine *engine, struct queue_turn *turn)
{
    uint64_t wanted;
    int ret = exchange_requests(engine, turn, &wanted);

    /* No memory for it in the kernel: what is in the queues is still there. */
    if (ret == -ENOMEM)
        turn->count = 0;
    else if (ret == 0 && turn->count == 0 && wanted > engine->request_buf_size)
        engine_set_request_buf(engine, MIN(wanted, ENGINE_MAX_REQUEST));
    return ret == -ENOMEM ? 0 : ret;
}

static struct request request_of(struct engine *engine, const struct vgpu_queue_request *taken)
{
    struct request request = {
        .data = engine->request_buf + taken->offset,
        .size = MIN(taken->request_size, engine->request_buf_size - taken->offset),
        .response_size = taken->response_size,
        .epoch = engine->epoch,
        .queue = taken->queue,
        .token = taken->token,
    };

    if (request.size >= sizeof(request.hdr))
        memcpy(&request.hdr, request.data, sizeof(request.hdr));
    return request;
}

static void handle_request(struct engine *engine, const struct request *request, bool truncated)
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
        control_answer(engine, request, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
    } else {
        control_process(engine, request);
    }
}

/* An answer does not wait for the commands that were taken with its own. */
void queue_handle(struct engine *engine, const struct queue_turn *turn)
{
    for (uint32_t i = 0; i < turn->count; i++) {
        struct request request = request_of(engine, &turn->requests[i]);

        fence_keep_next(&engine->fences, i + 1 == turn->count);
        engine->requests++;
        handle_request(engine, &request, turn->requests[i].request_size > request.size);
    }
    fence_keep_next(&engine->fences, false);
}
