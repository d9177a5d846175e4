/* SPDX-License-Identifier: MIT */
/* Virtqueues: requests and responses between a guest and an engine, well-formed and not. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "testbed.h"

#define CONTROL VGPU_QUEUE_CONTROL

static void test_round_trips(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    /* More than the ring and its 16-bit indices' first wrap of the ring. */
    for (unsigned i = 1; i <= 3 * GUEST_QUEUE_SIZE; i++)
        assert_round_trip(tb, i);
    g_assert_cmpint(atomic_load(&tb->engine->state->error), ==, 0);
}

static void test_cursor_queue(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_update_cursor req = {.hdr.type = VIRTIO_GPU_CMD_MOVE_CURSOR};
    struct virtio_gpu_ctrl_hdr resp = {0};
    uint32_t len;

    assert_ok(
        guest_request(&tb->guest, VGPU_QUEUE_CURSOR, &req, sizeof(req), &resp, sizeof(resp), &len));
    g_assert_cmphex(resp.type, ==, VIRTIO_GPU_RESP_OK_NODATA);
    /* Linux sends cursor commands without room for a response. */
    assert_ok(guest_request(&tb->guest, VGPU_QUEUE_CURSOR, &req, sizeof(req), NULL, 0, &len));
    g_assert_cmpuint(len, ==, 0);
    assert_round_trip(tb, 1);
}

/* Request and response scattered over @parts descriptors each, across pages. */
static void scattered(Testbed *tb, unsigned parts, uint32_t part_size, bool indirect)
{
    g_autofree GuestBuf *out = g_new0(GuestBuf, parts);
    g_autofree GuestBuf *in = g_new0(GuestBuf, parts);
    g_autofree uint8_t *sent = g_malloc0((size_t)parts * part_size);
    GuestQueue *q = &tb->guest.queue[CONTROL];
    struct virtio_gpu_ctrl_hdr hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = 3};
    uint32_t len;
    int head;

    for (size_t i = 0; i < (size_t)parts * part_size; i++)
        sent[i] = (uint8_t)(i * 7 + i / 251);
    memcpy(sent, &hdr, sizeof(hdr));
    for (unsigned i = 0; i < parts; i++) {
        uint8_t *p = guest_alloc(&tb->guest, part_size, 1, &out[i].iova);

        memcpy(p, sent + (size_t)i * part_size, part_size);
        out[i].len = part_size;
        guest_alloc(&tb->guest, part_size, 1, &in[i].iova);
        in[i].len = part_size;
    }
    head = guest_queue_add(q, out, parts, in, parts, indirect);
    assert_ok(head);
    guest_queue_kick(q);
    g_assert_cmpint(guest_queue_wait(q, &len, GUEST_TIMEOUT_MS), ==, head);
    g_assert_cmpuint(len, ==, parts * part_size);
    for (unsigned i = 0; i < parts; i++) {
        size_t skip = i ? 0 : MIN(sizeof(hdr), part_size);

        if (i == 0 && part_size < sizeof(hdr))
            continue; /* the engine writes the header */
        g_assert_cmpmem((uint8_t *)guest_ptr(&tb->guest, in[i].iova) + skip, part_size - skip,
                        sent + (size_t)i * part_size + skip, part_size - skip);
    }
}

static void test_scattered(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    scattered(tb, 1, 24, false);
    scattered(tb, 4, 100, false);
    scattered(tb, 20, 1000, false);
    scattered(tb, 3, 9001, false);
    g_assert_cmpuint(tb->guest.queue[CONTROL].num_free, ==, GUEST_QUEUE_SIZE);
}

static void test_indirect(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    scattered(tb, 1, 24, true);
    scattered(tb, 20, 1000, true);
    scattered(tb, 64, 4096, true);
    g_assert_cmpuint(tb->guest.queue[CONTROL].num_free, ==, GUEST_QUEUE_SIZE);
}

/* Larger than the driver's own buffer: like SUBMIT_3D with a long command stream. */
static void test_large_request(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    scattered(tb, 30, 16384, true);
    assert_round_trip(tb, 1);
}

/* A large request does not cost the rings their pins: the driver keeps 32 pages besides them. */
static void test_rings_stay_pinned(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    scattered(tb, 30, 16384, true);
    g_assert_cmpuint(vmm_charged_kb(), >, 32 * PAGE_BYTES / 1024);
}

/* A full ring of requests at once. */
static void test_full_ring(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    GuestQueue *q = &tb->guest.queue[CONTROL];
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D,
                                      .flags = VIRTIO_GPU_FLAG_FENCE};
    struct virtio_gpu_ctrl_hdr *resp[GUEST_QUEUE_SIZE];
    int by_head[GUEST_QUEUE_SIZE];

    for (unsigned round = 0; round < 3; round++) {
        unsigned n = 0;

        atomic_store(&tb->engine->state->hold, ENGINE_HOLD_QUEUES);
        g_usleep(50000);
        for (unsigned i = 0; i < GUEST_QUEUE_SIZE / 2; i++, n++) {
            int head;

            req.fence_id = 1000 + i;
            head = guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req),
                                (void **)&resp[i]);
            assert_ok(head);
            by_head[head] = (int)i;
        }
        g_assert_cmpuint(q->num_free, ==, 0);
        atomic_store(&tb->engine->state->hold, 0);
        guest_queue_kick_always(q);
        while (n--) {
            int head = guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS);

            assert_ok(head);
            g_assert_cmpuint(resp[by_head[head]]->fence_id, ==, 1000u + (unsigned)by_head[head]);
        }
    }
}

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

static int push_raw(Testbed *tb, uint64_t epoch, uint32_t queue, uint32_t token, uint32_t size)
{
    PushCall call = {.epoch = epoch, .answer = {.queue = queue, .token = token, .size = size}};

    return engine_peer_call(tb->engine, call_push_raw, &call, sizeof(call));
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
    assert_fails(push_raw(tb, call.epoch, CONTROL, call.token[0], 24), ENOENT);
    assert_fails(push_raw(tb, call.epoch, VGPU_QUEUE_CURSOR, call.token[1], 24), ENOENT);
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
    assert_fails(push_raw(tb, epoch, CONTROL, 0xffffffff, 24), ENOENT);
    assert_fails(push_raw(tb, epoch, 2, 0, 24), EINVAL);
    assert_fails(push_raw(tb, epoch + 1, CONTROL, 0, 24), ESTALE);
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

typedef struct {
    struct vgpu_queue_exchange x;
    struct vgpu_queue_request request;
    uint8_t data[64];
    uint64_t size;
    uint64_t epoch; /* 0: the present one */
    uint32_t queues;
    uint32_t flags;
    uint32_t poll_us;
    uint32_t wait_ms;
    int32_t wait_fd;
    int64_t took_us;
} PopCall;

static int call_pop(EngineCtx *ctx, void *arg)
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
        assert_fails(engine_peer_call(tb->engine, call_pop, &call, sizeof(call)), EMSGSIZE);
        g_assert_cmpuint(call.request.request_size, ==, sizeof(req));
    }
    call.flags = VGPU_EXCHANGE_TRUNCATE;
    assert_ok(engine_peer_call(tb->engine, call_pop, &call, sizeof(call)));
    g_assert_cmpuint(call.request.request_size, ==, sizeof(req));
    g_assert_cmpmem(call.data, 24, &req, 24);
    g_assert_cmpuint(call.data[24], ==, 0);
    assert_ok(push_raw(tb, call.epoch, CONTROL, call.request.token, 24));
    g_assert_cmpint(guest_queue_wait(&tb->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS), >=, 0);
}

static void test_pop_refusals(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    PopCall call = {.size = 64};

    assert_fails(engine_peer_call(tb->engine, call_pop, &call, sizeof(call)), EAGAIN);
    call.queues = 4;
    assert_fails(engine_peer_call(tb->engine, call_pop, &call, sizeof(call)), EINVAL);
    call.queues = 0;
    call.flags = 0x80;
    assert_fails(engine_peer_call(tb->engine, call_pop, &call, sizeof(call)), EINVAL);
    call.flags = 0;
    call.poll_us = VGPU_EXCHANGE_POLL_MAX + 1;
    assert_fails(engine_peer_call(tb->engine, call_pop, &call, sizeof(call)), EINVAL);
    call.poll_us = 0;
    call.epoch = peer_epoch(tb->engine) + 7;
    assert_fails(engine_peer_call(tb->engine, call_pop, &call, sizeof(call)), ESTALE);
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

/* Without EVENT_IDX and INDIRECT_DESC, too. */
static void test_plain_features(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    guest_up(&tb->guest, GUEST_FEATURES & ~(1ull << VIRTIO_RING_F_EVENT_IDX |
                                            1ull << VIRTIO_RING_F_INDIRECT_DESC));
    for (unsigned i = 1; i <= 2 * GUEST_QUEUE_SIZE; i++)
        assert_round_trip(tb, i);
    scattered(tb, 10, 500, false);
}

/* While the engine is busy the guest need not ring, and no request is lost by that. */
static void test_doorbells_are_spared(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    GuestQueue *q = &tb->guest.queue[CONTROL];
    unsigned rung = 0;
    void *resp;

    assert_round_trip(tb, 1);
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_QUEUES);
    g_usleep(50000);
    for (unsigned i = 0; i < 16; i++) {
        GuestBuf out = {.len = sizeof(req)}, in = {.len = sizeof(req)};

        memcpy(guest_alloc(&tb->guest, sizeof(req), 16, &out.iova), &req, sizeof(req));
        resp = guest_alloc(&tb->guest, sizeof(req), 16, &in.iova);
        (void)resp;
        assert_ok(guest_queue_add(q, &out, 1, &in, 1, false));
        rung += guest_queue_kick(q);
    }
    g_assert_cmpuint(rung, ==, 1);
    atomic_store(&tb->engine->state->hold, 0);
    guest_queue_kick_always(q);
    for (unsigned i = 0; i < 16; i++)
        g_assert_cmpint(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS), >=, 0);
}

#define POLLED 200

/* Serves so many requests by exchanges alone: each gives the last answer, and waits for the next
 * request. */
static int call_serve_polled(EngineCtx *ctx, void *arg)
{
    struct virtio_gpu_ctrl_hdr resp = {.type = VIRTIO_GPU_RESP_OK_NODATA};
    struct vgpu_queue_answer answer = {.buf = (uintptr_t)&resp, .size = sizeof(resp)};
    struct vgpu_queue_request request;
    unsigned served = 0, *calls = arg;
    int64_t end = now_ms() + GUEST_TIMEOUT_MS;

    while (served < POLLED && now_ms() < end) {
        struct vgpu_queue_exchange x =
            exchange_for_pop(CONTROL, engine_epoch(ctx), ctx->request, PAGE_BYTES, &request);

        x.answers = (uintptr_t)&answer;
        x.nanswers = answer.token != 0;
        x.flags = VGPU_EXCHANGE_EVENTS;
        x.poll_us = VGPU_EXCHANGE_POLL_MAX;
        if (engine_ioctl(ctx, VGPU_ENGINE_QUEUE_EXCHANGE, &x))
            return -errno;
        ++*calls;
        served += x.nanswers && !answer.result;
        answer.token = x.nrequests ? request.token : 0;
    }
    return served == POLLED ? 0 : -ETIMEDOUT;
}

static void *serve_polled(void *data)
{
    Testbed *tb = data;
    unsigned calls = 0;

    assert_ok(engine_peer_call(tb->engine, call_serve_polled, &calls, sizeof(calls)));
    g_test_message("%u requests, one after the other: %u calls", POLLED, calls);
    return NULL;
}

/* While an exchange looks no doorbell is requested. One that has found nothing has asked for it. */
static void test_polled(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    GuestBuf out = {.len = sizeof(req)}, in = {.len = sizeof(req)};
    GuestQueue *q = &tb->guest.queue[CONTROL];
    PopCall call = {.size = 64, .poll_us = 900, .flags = VGPU_EXCHANGE_EVENTS};
    int64_t end = now_ms() + GUEST_TIMEOUT_MS;
    unsigned rung = 0;
    pthread_t engine;

    memcpy(guest_alloc(&tb->guest, sizeof(req), 16, &out.iova), &req, sizeof(req));
    guest_alloc(&tb->guest, sizeof(req), 16, &in.iova);
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_QUEUES);
    g_usleep(50000);

    /* The first may bring an event, which ends it. */
    assert_fails(engine_peer_call(tb->engine, call_pop, &call, sizeof(call)), EAGAIN);
    assert_fails(engine_peer_call(tb->engine, call_pop, &call, sizeof(call)), EAGAIN);
    g_assert_cmpint(call.took_us, >=, 900);
    g_assert_cmpint(guest_queue_add(q, &out, 1, &in, 1, false), >=, 0);
    g_assert_true(guest_queue_kick(q));
    assert_ok(engine_peer_call(tb->engine, call_pop, &call, sizeof(call)));
    assert_ok(push_raw(tb, call.epoch, CONTROL, call.request.token, 24));
    g_assert_cmpint(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS), >=, 0);

    g_assert_cmpint(pthread_create(&engine, NULL, serve_polled, tb), ==, 0);
    for (unsigned i = 0; i < POLLED; i++) {
        g_assert_cmpint(guest_queue_add(q, &out, 1, &in, 1, false), >=, 0);
        rung += guest_queue_kick(q);
        /* Without a sleep, which would be longer than an exchange looks. */
        while (guest_queue_take(q, NULL) < 0 && now_ms() < end)
            sched_yield();
    }
    pthread_join(engine, NULL);
    /* On a slow machine the guest may take longer than a look, but not each time. */
    g_assert_cmpuint(rung, <, POLLED);
}

#define FOR_LONG_MS (4 * GUEST_TIMEOUT_MS)

/* A readable file of the engine's. */
static int call_make_event(EngineCtx *ctx, void *arg)
{
    (void)ctx;
    *(int32_t *)arg = eventfd(1, EFD_CLOEXEC);
    return 0;
}

static void on_alarm(int signum)
{
    (void)signum;
}

static int call_pop_alarmed(EngineCtx *ctx, void *arg)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval soon = {.it_value.tv_usec = 20000};
    int ret;

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    ret = call_pop(ctx, arg);
    signal(SIGALRM, SIG_DFL);
    return ret;
}

static void *submit_late(void *data)
{
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    Testbed *tb = data;
    void *resp;

    g_usleep(50000); /* likely asleep by now */
    assert_ok(guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req), &resp));
    return NULL;
}

/* An exchange that finds nothing sleeps: for its time, until a signal or another file ends that. */
static void test_sleeps(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    PopCall call = {.size = 64, .flags = VGPU_EXCHANGE_EVENTS, .wait_ms = 50, .wait_fd = -1};
    const PopCall fresh = call;

    assert_round_trip(tb, 1);
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_EVENTS);
    g_usleep(50000);
    assert_fails(engine_peer_call(tb->engine, call_pop, &call, sizeof(call)), EAGAIN);
    call = fresh; /* the first may have brought an event */
    assert_fails(engine_peer_call(tb->engine, call_pop, &call, sizeof(call)), EAGAIN);
    g_assert_cmpint(call.took_us, >=, 50000);
    g_assert_cmpuint(call.x.state | call.x.event.events, ==, 0);

    call.wait_ms = VGPU_EXCHANGE_FOREVER;
    assert_fails(engine_peer_call(tb->engine, call_pop_alarmed, &call, sizeof(call)), EAGAIN);
    g_assert_cmpuint(call.x.state | call.x.event.events, ==, 0);

    assert_ok(engine_peer_call(tb->engine, call_make_event, &call.wait_fd, sizeof(call.wait_fd)));
    assert_fails(engine_peer_call(tb->engine, call_pop, &call, sizeof(call)), EAGAIN);
    g_assert_cmpuint(call.x.state, ==, VGPU_EXCHANGE_WOKEN);

    call.wait_fd = 1000;
    assert_fails(engine_peer_call(tb->engine, call_pop, &call, sizeof(call)), EBADF);
    call.flags = 0;
    assert_fails(engine_peer_call(tb->engine, call_pop, &call, sizeof(call)), EINVAL);
}

/* The call that slept has the request and the doorbell. In an epoch that is over it sleeps, too. */
static void test_sleeps_until_request(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    PopCall call = {
        .size = 64, .flags = VGPU_EXCHANGE_EVENTS, .wait_ms = FOR_LONG_MS, .wait_fd = -1};
    PopCall stale = {.size = 64, .flags = VGPU_EXCHANGE_EVENTS, .wait_ms = 50, .wait_fd = -1};
    pthread_t guest;

    assert_round_trip(tb, 1);
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_EVENTS);
    g_usleep(50000);
    stale.epoch = peer_epoch(tb->engine) + 7;
    assert_fails(engine_peer_call(tb->engine, call_pop, &stale, sizeof(stale)), ESTALE);
    assert_fails(engine_peer_call(tb->engine, call_pop, &stale, sizeof(stale)), ESTALE);
    g_assert_cmpint(stale.took_us, >=, 50000);

    g_assert_cmpint(pthread_create(&guest, NULL, submit_late, tb), ==, 0);
    assert_ok(engine_peer_call(tb->engine, call_pop, &call, sizeof(call)));
    pthread_join(guest, NULL);
    g_assert_cmphex(call.x.event.events, ==, VGPU_EVENT_KICK);
    g_assert_cmpint(call.took_us, <, (int64_t)FOR_LONG_MS * 1000);
    assert_ok(push_raw(tb, call.epoch, CONTROL, call.request.token, 24));
    g_assert_cmpint(guest_queue_wait(&tb->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS), >=, 0);
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
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_EVENTS);
    g_usleep(50000);
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

/* Whether the last kick arrives: EVENT_IDX races lose exactly one of many. */
static void test_many_small(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    GuestQueue *q = &tb->guest.queue[CONTROL];
    GuestBuf out = {.len = sizeof(req)}, in = {.len = sizeof(req)};
    unsigned added = 0, taken = 0;

    memcpy(guest_alloc(&tb->guest, sizeof(req), 16, &out.iova), &req, sizeof(req));
    guest_alloc(&tb->guest, sizeof(req), 16, &in.iova);
    while (taken < 3000) {
        if (added < 3000 && guest_queue_add(q, &out, 1, &in, 1, false) >= 0) {
            added++;
            guest_queue_kick(q);
        }
        if (q->num_free < 2)
            g_assert_cmpint(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS), >=, 0);
        else if (added == 3000)
            g_assert_cmpint(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS), >=, 0);
        else if (guest_queue_take(q, NULL) < 0)
            continue;
        taken++;
    }
    g_assert_cmpint(atomic_load(&tb->engine->state->error), ==, 0);
}

#define READ_ONLY_IOVA 0x90000000ull

/*
 * A guest with its own IOMMU maps each request for reading only. Nothing is written there, even if
 * the guest asks for it: the chain comes back with length 0.
 */
static void test_read_only_request(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    GuestQueue *q = &tb->guest.queue[CONTROL];
    uint8_t *area = tb->ram.mem + 8 * MIB;
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D, .fence_id = 42}, *resp;
    GuestBuf out = {READ_ONLY_IOVA, sizeof(req)};
    GuestBuf in = {TESTBED_RAM_IOVA + 9 * MIB, sizeof(req)};
    uint32_t len = 0;

    memcpy(area, &req, sizeof(req));
    assert_ok(
        vmm_dma_map(&tb->container, area, READ_ONLY_IOVA, PAGE_BYTES, VFIO_DMA_MAP_FLAG_READ));
    for (unsigned i = 0; i < 3; i++) {
        g_assert_cmpint(guest_queue_add(q, &out, 1, &in, 1, false), >=, 0);
        guest_queue_kick(q);
        g_assert_cmpint(guest_queue_wait(q, &len, GUEST_TIMEOUT_MS), >=, 0);
        g_assert_cmpuint(len, ==, sizeof(req));
        resp = (struct virtio_gpu_ctrl_hdr *)(tb->ram.mem + 9 * MIB);
        g_assert_cmpuint(resp->fence_id, ==, 42);
    }
    in.iova = READ_ONLY_IOVA + 64;
    g_assert_cmpint(guest_queue_add(q, &out, 1, &in, 1, false), >=, 0);
    guest_queue_kick(q);
    g_assert_cmpint(guest_queue_wait(q, &len, GUEST_TIMEOUT_MS), >=, 0);
    g_assert_cmpuint(len, ==, 0);
    g_assert_cmpuint(area[64], ==, 0);
    /* Mapped again for both, it is. */
    assert_ok(vmm_dma_unmap(&tb->container, READ_ONLY_IOVA, PAGE_BYTES));
    assert_ok(vmm_dma_map(&tb->container, area, READ_ONLY_IOVA, PAGE_BYTES,
                          VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE));
    g_assert_cmpint(guest_queue_add(q, &out, 1, &in, 1, false), >=, 0);
    guest_queue_kick(q);
    g_assert_cmpint(guest_queue_wait(q, &len, GUEST_TIMEOUT_MS), >=, 0);
    g_assert_cmpuint(len, ==, sizeof(req));
    assert_round_trip(tb, 1);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/queue/round-trips", test_round_trips);
    driver_test_add("/queue/cursor-queue", test_cursor_queue);
    driver_test_add("/queue/scattered", test_scattered);
    driver_test_add("/queue/indirect", test_indirect);
    driver_test_add("/queue/large-request", test_large_request);
    driver_test_add("/queue/rings-stay-pinned", test_rings_stay_pinned);
    driver_test_add("/queue/full-ring", test_full_ring);
    driver_test_add("/queue/out-of-order", test_out_of_order);
    driver_test_add("/queue/push-refusals", test_push_refusals);
    driver_test_add("/queue/push-too-much", test_push_too_much);
    driver_test_add("/queue/pop-too-small", test_pop_too_small);
    driver_test_add("/queue/pop-refusals", test_pop_refusals);
    driver_test_add("/queue/request-is-a-copy", test_request_is_a_copy);
    driver_test_add("/queue/plain-features", test_plain_features);
    driver_test_add("/queue/doorbells-are-spared", test_doorbells_are_spared);
    driver_test_add("/queue/polled", test_polled);
    driver_test_add("/queue/sleeps", test_sleeps);
    driver_test_add("/queue/sleeps-until-request", test_sleeps_until_request);
    driver_test_add("/queue/batch", test_batch);
    driver_test_add("/queue/batch-lost", test_batch_lost);
    driver_test_add("/queue/connected", test_connected);
    driver_test_add("/queue/many-small", test_many_small);
    driver_test_add("/queue/read-only-request", test_read_only_request);
    return driver_test_run();
}
