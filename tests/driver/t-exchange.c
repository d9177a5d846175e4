/* SPDX-License-Identifier: MIT */
/* An exchange that finds nothing looks again, or sleeps; a busy engine needs no doorbell. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/time.h>

#include "pop_and_push.h"

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
    assert_fails(engine_peer_call(tb->engine, engine_call_pop, &call, sizeof(call)), EAGAIN);
    assert_fails(engine_peer_call(tb->engine, engine_call_pop, &call, sizeof(call)), EAGAIN);
    g_assert_cmpint(call.took_us, >=, 900);
    g_assert_cmpint(guest_queue_add(q, &out, 1, &in, 1, false), >=, 0);
    g_assert_true(guest_queue_kick(q));
    assert_ok(engine_peer_call(tb->engine, engine_call_pop, &call, sizeof(call)));
    assert_ok(engine_push_of(tb, call.epoch, CONTROL, call.request.token, 24));
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
    ret = engine_call_pop(ctx, arg);
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
    engine_peer_hold(tb->engine, ENGINE_HOLD_EVENTS);
    assert_fails(engine_peer_call(tb->engine, engine_call_pop, &call, sizeof(call)), EAGAIN);
    call = fresh; /* the first may have brought an event */
    assert_fails(engine_peer_call(tb->engine, engine_call_pop, &call, sizeof(call)), EAGAIN);
    g_assert_cmpint(call.took_us, >=, 50000);
    g_assert_cmpuint(call.x.state | call.x.event.events, ==, 0);

    call.wait_ms = VGPU_EXCHANGE_FOREVER;
    assert_fails(engine_peer_call(tb->engine, call_pop_alarmed, &call, sizeof(call)), EAGAIN);
    g_assert_cmpuint(call.x.state | call.x.event.events, ==, 0);

    assert_ok(engine_peer_call(tb->engine, call_make_event, &call.wait_fd, sizeof(call.wait_fd)));
    assert_fails(engine_peer_call(tb->engine, engine_call_pop, &call, sizeof(call)), EAGAIN);
    g_assert_cmpuint(call.x.state, ==, VGPU_EXCHANGE_WOKEN);

    call.wait_fd = 1000;
    assert_fails(engine_peer_call(tb->engine, engine_call_pop, &call, sizeof(call)), EBADF);
    call.flags = 0;
    assert_fails(engine_peer_call(tb->engine, engine_call_pop, &call, sizeof(call)), EINVAL);
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
    engine_peer_hold(tb->engine, ENGINE_HOLD_EVENTS);
    stale.epoch = peer_epoch(tb->engine) + 7;
    assert_fails(engine_peer_call(tb->engine, engine_call_pop, &stale, sizeof(stale)), ESTALE);
    assert_fails(engine_peer_call(tb->engine, engine_call_pop, &stale, sizeof(stale)), ESTALE);
    g_assert_cmpint(stale.took_us, >=, 50000);

    g_assert_cmpint(pthread_create(&guest, NULL, submit_late, tb), ==, 0);
    assert_ok(engine_peer_call(tb->engine, engine_call_pop, &call, sizeof(call)));
    pthread_join(guest, NULL);
    g_assert_cmphex(call.x.event.events, ==, VGPU_EVENT_KICK);
    g_assert_cmpint(call.took_us, <, (int64_t)FOR_LONG_MS * 1000);
    assert_ok(engine_push_of(tb, call.epoch, CONTROL, call.request.token, 24));
    g_assert_cmpint(guest_queue_wait(&tb->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS), >=, 0);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/exchange/doorbells-are-spared", test_doorbells_are_spared);
    driver_test_add("/exchange/polled", test_polled);
    driver_test_add("/exchange/sleeps", test_sleeps);
    driver_test_add("/exchange/sleeps-until-request", test_sleeps_until_request);
    return driver_test_run();
}