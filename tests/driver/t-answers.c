/* SPDX-License-Identifier: MIT */
/* What an engine takes and answers: in any order, once, if there is room, several at once. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pop_and_push.h"

typedef struct {
    uint32_t count;
    int32_t ret;
    uint64_t epoch;
    uint32_t token[8];
} TokenCall;

/* Answers the engine's held requests, the last first; remembers the tokens. */
static int call_push_reversed(EngineCtx *ctx, void *arg)
{
    TokenCall *call = arg;

    call->count = ctx->nheld;
    for (unsigned i = 0; i < ctx->nheld; i++) {
        EngineHeld *held = &ctx->held[ctx->nheld - 1 - i];
        struct virtio_gpu_ctrl_hdr resp = held->header;
        int ret;

        resp.type = VIRTIO_GPU_RESP_OK_NODATA;
        ret = engine_push(ctx, held->queue, held->epoch, held->token, &resp, sizeof(resp));
        if (ret)
            return ret;
        call->epoch = held->epoch;
        if (i < G_N_ELEMENTS(call->token))
            call->token[i] = held->token;
    }
    ctx->nheld = 0;
    return 0;
}

static void hold_requests(Testbed *tb, unsigned n, void **resp)
{
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D,
                                      .flags = VIRTIO_GPU_FLAG_FENCE};
    unsigned long before = atomic_load(&tb->engine->state->pops);

    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_ANSWERS);
    for (unsigned i = 0; i < n; i++) {
        req.fence_id = 100 + i;
        assert_ok(guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req), &resp[i]));
    }
    g_assert_true(
        wait_until(atomic_load(&tb->engine->state->pops) == before + n, GUEST_TIMEOUT_MS));
}

static void test_out_of_order(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    GuestQueue *q = &tb->guest.queue[CONTROL];
    TokenCall call = {0};
    void *resp[8];
    int heads[8];

    hold_requests(tb, 8, resp);
    g_assert_cmpint(guest_queue_take(q, NULL), ==, -EAGAIN);
    assert_ok(engine_peer_call(tb->engine, call_push_reversed, &call, sizeof(call)));
    g_assert_cmpuint(call.count, ==, 8);
    for (unsigned i = 0; i < 8; i++) {
        struct virtio_gpu_ctrl_hdr *hdr = resp[7 - i];

        heads[i] = guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS);
        assert_ok(heads[i]);
        g_assert_cmpuint(hdr->fence_id, ==, 107 - i);
        if (i)
            g_assert_cmpint(heads[i], !=, heads[i - 1]);
    }
    /* A token is valid once. */
    assert_fails(engine_push_of(tb, call.epoch, CONTROL, call.token[0], 24), ENOENT);
    assert_fails(engine_push_of(tb, call.epoch, VGPU_QUEUE_CURSOR, call.token[1], 24), ENOENT);
    atomic_store(&tb->engine->state->hold, 0);
    assert_round_trip(tb, 1);
}

static void test_push_refusals(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    GuestQueue *q = &tb->guest.queue[CONTROL];
    uint64_t epoch = peer_epoch(tb->engine);
    TokenCall call = {0};
    void *resp[1];

    hold_requests(tb, 1, resp);
    assert_fails(engine_push_of(tb, epoch, CONTROL, 0xffffffff, 24), ENOENT);
    assert_fails(engine_push_of(tb, epoch, 2, 0, 24), EINVAL);
    assert_fails(engine_push_of(tb, epoch + 1, CONTROL, 0, 24), ESTALE);
    g_assert_cmpint(guest_queue_take(q, NULL), ==, -EAGAIN);
    assert_ok(engine_peer_call(tb->engine, call_push_reversed, &call, sizeof(call)));
    g_assert_cmpint(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS), >=, 0);
}

/* A response that exceeds the room is refused and can be pushed again, shorter. */
static int call_push_too_much(EngineCtx *ctx, void *arg)
{
    EngineHeld *held = &ctx->held[0];
    uint8_t buf[64] = {0};

    (void)arg;
    return engine_push(ctx, held->queue, held->epoch, held->token, buf, held->response_size + 1);
}

static void test_push_too_much(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    TokenCall call = {0};
    void *resp[1];

    hold_requests(tb, 1, resp);
    assert_fails(engine_peer_call(tb->engine, call_push_too_much, NULL, 0), EMSGSIZE);
    assert_ok(engine_peer_call(tb->engine, call_push_reversed, &call, sizeof(call)));
    g_assert_cmpint(guest_queue_wait(&tb->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS), >=, 0);
}

static void test_pop_too_small(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_set_scanout req = {.hdr.type = VIRTIO_GPU_CMD_SET_SCANOUT};
    PopCall call = {.size = 24};
    void *resp;

    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_QUEUES);
    g_usleep(50000);
    assert_ok(guest_submit(&tb->guest, CONTROL, &req, sizeof(req), 24, &resp));
    for (int i = 0; i < 3; i++) {
        assert_fails(engine_peer_call(tb->engine, engine_call_pop, &call, sizeof(call)), EMSGSIZE);
        g_assert_cmpuint(call.request.request_size, ==, sizeof(req));
    }
    call.flags = VGPU_EXCHANGE_TRUNCATE;
    assert_ok(engine_peer_call(tb->engine, engine_call_pop, &call, sizeof(call)));
    g_assert_cmpuint(call.request.request_size, ==, sizeof(req));
    g_assert_cmpmem(call.data, 24, &req, 24);
    g_assert_cmpuint(call.data[24], ==, 0);
    assert_ok(engine_push_of(tb, call.epoch, CONTROL, call.request.token, 24));
    g_assert_cmpint(guest_queue_wait(&tb->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS), >=, 0);
}

static void test_pop_refusals(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    PopCall call = {.size = 64};

    assert_fails(engine_peer_call(tb->engine, engine_call_pop, &call, sizeof(call)), EAGAIN);
    call.queues = 4;
    assert_fails(engine_peer_call(tb->engine, engine_call_pop, &call, sizeof(call)), EINVAL);
    call.queues = 0;
    call.flags = 0x80;
    assert_fails(engine_peer_call(tb->engine, engine_call_pop, &call, sizeof(call)), EINVAL);
    call.flags = 0;
    call.poll_us = VGPU_EXCHANGE_POLL_MAX + 1;
    assert_fails(engine_peer_call(tb->engine, engine_call_pop, &call, sizeof(call)), EINVAL);
    call.poll_us = 0;
    call.epoch = peer_epoch(tb->engine) + 7;
    assert_fails(engine_peer_call(tb->engine, engine_call_pop, &call, sizeof(call)), ESTALE);
}

/* The guest rewrites a request after it was taken: the engine must not see that. */
static void test_request_is_a_copy(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_ctrl_hdr req = {
        .type = VIRTIO_GPU_CMD_SUBMIT_3D, .flags = VIRTIO_GPU_FLAG_FENCE, .fence_id = 100};
    GuestQueue *q = &tb->guest.queue[CONTROL];
    TokenCall call = {0};
    void *resp[1];

    hold_requests(tb, 1, resp);
    for (unsigned i = 0; i < q->size; i++) {
        if (q->desc[i].addr >= tb->ram.iova && q->desc[i].len == sizeof(req) &&
            !(q->desc[i].flags & VRING_DESC_F_WRITE))
            memset(guest_ptr(&tb->guest, q->desc[i].addr), 0xee, sizeof(req));
    }
    assert_ok(engine_peer_call(tb->engine, call_push_reversed, &call, sizeof(call)));
    g_assert_cmpint(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS), >=, 0);
    g_assert_cmpuint(((struct virtio_gpu_ctrl_hdr *)resp[0])->fence_id, ==, 100);
}

typedef struct {
    uint64_t epoch;
    uint64_t event_epoch;
    uint32_t sizes;
    uint32_t more;
    uint32_t events;
    uint32_t kicked;
    int32_t results[3];
} BatchCall;

/* Takes five requests at once, answers three at once, one of them twice. */
static int call_batch(EngineCtx *ctx, void *arg)
{
    struct virtio_gpu_ctrl_hdr resp = {.type = VIRTIO_GPU_RESP_OK_NODATA};
    struct vgpu_queue_request requests[VGPU_EXCHANGE_MAX];
    struct vgpu_queue_answer answers[3];
    BatchCall *call = arg;
    struct vgpu_queue_exchange x = exchange_for_pop(CONTROL, engine_epoch(ctx), ctx->request,
                                                    VGPU_EXCHANGE_MAX * PAGE_BYTES, requests);
    int ret;

    x.nrequests = VGPU_EXCHANGE_MAX;
    x.flags = VGPU_EXCHANGE_EVENTS;
    x.queues = 0; /* the doorbell says which */
    ret = engine_ioctl(ctx, VGPU_ENGINE_QUEUE_EXCHANGE, &x);
    if (ret || x.nrequests != 5)
        return ret ? ret : -EBADMSG;
    call->epoch = x.epoch;
    call->more = x.queues;
    call->events = x.event.events;
    call->kicked = x.event.queues;
    call->event_epoch = x.event.epoch;
    for (unsigned i = 0; i < 5; i++) {
        struct virtio_gpu_ctrl_hdr hdr;

        memcpy(&hdr, ctx->request + requests[i].offset, sizeof(hdr));
        call->sizes += hdr.fence_id == 1 + i && requests[i].request_size == sizeof(hdr);
    }
    for (unsigned i = 0; i < 3; i++)
        answers[i] = (struct vgpu_queue_answer){
            .token = requests[i ? i - 1 : 0].token, .buf = (uintptr_t)&resp, .size = sizeof(resp)};
    x = exchange_for_push(x.epoch, answers);
    x.nanswers = 3;
    ret = engine_ioctl(ctx, VGPU_ENGINE_QUEUE_EXCHANGE, &x);
    for (unsigned i = 0; i < 3; i++)
        call->results[i] = answers[i].result;
    return ret;
}

static void test_batch(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    GuestQueue *q = &tb->guest.queue[CONTROL];
    BatchCall call = {0};
    void *resp;

    assert_round_trip(tb, 77);
    engine_peer_hold(tb->engine, ENGINE_HOLD_EVENTS);
    for (unsigned i = 0; i < 5; i++) {
        req.fence_id = 1 + i;
        assert_ok(guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req), &resp));
    }
    assert_ok(engine_peer_call(tb->engine, call_batch, &call, sizeof(call)));
    g_assert_cmpuint(call.sizes, ==, 5);
    g_assert_cmpuint(call.more, ==, 0);
    g_assert_cmphex(call.events, ==, VGPU_EVENT_KICK);
    g_assert_cmphex(call.kicked, ==, 1u << CONTROL);
    g_assert_cmpuint(call.event_epoch, ==, call.epoch);
    g_assert_cmpint(call.results[0], ==, 0);
    g_assert_cmpint(call.results[1], ==, -ENOENT);
    g_assert_cmpint(call.results[2], ==, 0);
    for (unsigned i = 0; i < 2; i++)
        g_assert_cmpint(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS), >=, 0);
    g_assert_cmpint(guest_queue_take(q, NULL), ==, -EAGAIN);
}

/* What cannot be copied to the engine is answered with an error. */
static int call_batch_lost(EngineCtx *ctx, void *arg)
{
    struct vgpu_queue_exchange x =
        exchange_for_pop(CONTROL, engine_epoch(ctx), ctx->request, PAGE_BYTES, NULL);

    (void)arg;
    x.nrequests = VGPU_EXCHANGE_MAX;
    return engine_ioctl(ctx, VGPU_ENGINE_QUEUE_EXCHANGE, &x);
}

static void test_batch_lost(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D}, *resp[5];
    GuestQueue *q = &tb->guest.queue[CONTROL];

    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_QUEUES);
    g_usleep(50000);
    for (unsigned i = 0; i < 5; i++)
        assert_ok(
            guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req), (void **)&resp[i]));
    assert_fails(engine_peer_call(tb->engine, call_batch_lost, NULL, 0), EFAULT);
    for (unsigned i = 0; i < 5; i++)
        g_assert_cmpint(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS), >=, 0);
    for (unsigned i = 0; i < 5; i++)
        g_assert_cmphex(resp[i]->type, ==, VIRTIO_GPU_RESP_ERR_UNSPEC);
    atomic_store(&tb->engine->state->hold, 0);
    assert_round_trip(tb, 1);
}

/* Results of an answer with no connection, with one that has hung up, and with one that has not. */
typedef struct {
    int no_file;
    int hung_up;
    int connected;
} ConnectedCall;

static int call_connected(EngineCtx *ctx, void *arg)
{
    struct virtio_gpu_ctrl_hdr hdr, resp = {.type = VIRTIO_GPU_RESP_OK_NODATA};
    uint64_t epoch = engine_epoch(ctx);
    struct vgpu_queue_request request;
    ConnectedCall *call = arg;
    int gone[2], ends[2];
    int ret = engine_pop(ctx, CONTROL, epoch, &hdr, sizeof(hdr), &request);

    if (ret || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, gone) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends))
        return ret ? ret : -errno;
    close(gone[1]);
    struct vgpu_queue_answer answer = {
        .token = request.token, .buf = (uintptr_t)&resp, .size = sizeof(resp)};
    struct vgpu_queue_exchange x = exchange_for_push(epoch, &answer);

    x.flags = VGPU_EXCHANGE_CONNECTED;
    x.wait_fd = gone[1];
    call->no_file = engine_ioctl(ctx, VGPU_ENGINE_QUEUE_EXCHANGE, &x);
    x.wait_fd = gone[0];
    call->hung_up = engine_ioctl(ctx, VGPU_ENGINE_QUEUE_EXCHANGE, &x);
    x.wait_fd = ends[0];
    ret = engine_ioctl(ctx, VGPU_ENGINE_QUEUE_EXCHANGE, &x);
    call->connected = ret ? ret : answer.result;
    close(gone[0]);
    close(ends[0]);
    close(ends[1]);
    return 0;
}

/* An answer that is true only if a process lives: without it the request stays in flight. */
static void test_connected(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    ConnectedCall call = {0};
    void *resp;

    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_QUEUES);
    g_usleep(50000);
    assert_ok(guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req), &resp));
    assert_ok(engine_peer_call(tb->engine, call_connected, &call, sizeof(call)));
    g_assert_cmpint(call.no_file, ==, -EBADF);
    g_assert_cmpint(call.hung_up, ==, -EPIPE);
    g_assert_cmpint(call.connected, ==, 0);
    g_assert_cmpint(guest_queue_wait(&tb->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS), >=, 0);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/answers/out-of-order", test_out_of_order);
    driver_test_add("/answers/push-refusals", test_push_refusals);
    driver_test_add("/answers/push-too-much", test_push_too_much);
    driver_test_add("/answers/pop-too-small", test_pop_too_small);
    driver_test_add("/answers/pop-refusals", test_pop_refusals);
    driver_test_add("/answers/request-is-a-copy", test_request_is_a_copy);
    driver_test_add("/answers/batch", test_batch);
    driver_test_add("/answers/batch-lost", test_batch_lost);
    driver_test_add("/answers/connected", test_connected);
    return driver_test_run();
}