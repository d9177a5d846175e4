/* SPDX-License-Identifier: MIT */
#include "pop_and_push.h"

int engine_call_pop(EngineCtx *ctx, void *arg)
{
    PopCall *call = arg;
    int ret;

    call->epoch = call->epoch ? call->epoch : engine_epoch(ctx);
    call->x = exchange_for_pop(CONTROL, call->epoch, call->data, call->size, &call->request);
    call->x.flags = call->flags;
    call->x.queues |= call->queues;
    call->x.poll_us = call->poll_us;
    call->x.wait_ms = call->wait_ms;
    call->x.wait_fd = call->wait_fd;
    call->took_us = -g_get_monotonic_time();
    ret = engine_exchange_pop(ctx, &call->x);
    call->took_us += g_get_monotonic_time();
    return ret;
}

typedef struct {
    uint64_t epoch;
    struct vgpu_queue_answer answer;
} PushCall;

static int call_push_raw(EngineCtx *ctx, void *arg)
{
    PushCall *call = arg;
    uint8_t buf[64] = {0};

    return engine_push(ctx, call->answer.queue, call->epoch, call->answer.token, buf,
                       call->answer.size);
}

int engine_push_of(Testbed *tb, uint64_t epoch, uint32_t queue, uint32_t token, uint32_t size)
{
    PushCall call = {.epoch = epoch, .answer = {.queue = queue, .token = token, .size = size}};

    return engine_peer_call(tb->engine, call_push_raw, &call, sizeof(call));
}
