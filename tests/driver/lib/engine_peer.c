/* SPDX-License-Identifier: MIT */
/* A fake engine: its process, its loop, calls into it. */
#include "engine_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL_MAX    (32 * 1024)
#define BUFFER_SIZE (1024 * 1024)

typedef struct {
    EngineCall fn;
    uint32_t size;
    int32_t ret;
    uint8_t arg[CALL_MAX];
} Message;

#define MESSAGE_HEAD offsetof(Message, arg)

static void note_error(EngineCtx *ctx, int ret)
{
    if (ret && ret != -EAGAIN && ret != -ESTALE)
        atomic_store(&ctx->state->error, -ret);
}

static void answer_request(EngineCtx *ctx, unsigned queue, uint64_t epoch,
                           const struct vgpu_queue_request *pop)
{
    size_t room = MIN(pop->response_size, BUFFER_SIZE);
    size_t size = engine_echo(ctx->request, pop->request_size, ctx->response, room);

    note_error(ctx, engine_push(ctx, queue, epoch, pop->token, ctx->response, size));
}

static void hold_request(EngineCtx *ctx, unsigned queue, uint64_t epoch,
                         const struct vgpu_queue_request *pop)
{
    EngineHeld *held = &ctx->held[ctx->nheld++ % ENGINE_MAX_HELD];

    held->epoch = epoch;
    held->queue = queue;
    held->token = pop->token;
    held->response_size = pop->response_size;
    memset(&held->header, 0, sizeof(held->header));
    memcpy(&held->header, ctx->request, MIN(pop->request_size, sizeof(held->header)));
}

void engine_serve_queue(EngineCtx *ctx, unsigned queue)
{
    uint64_t epoch = engine_epoch(ctx);
    struct vgpu_queue_request pop;
    int ret;

    while (!(ret = engine_pop(ctx, queue, epoch, ctx->request, BUFFER_SIZE, &pop))) {
        if (atomic_load(&ctx->state->hold) & ENGINE_HOLD_ANSWERS)
            hold_request(ctx, queue, epoch, &pop);
        else
            answer_request(ctx, queue, epoch, &pop);
    }
    note_error(ctx, ret);
}

static int attach_engine(EngineCtx *ctx)
{
    g_autofree char *node = g_build_filename("/dev/vgpu", ctx->uuid, NULL);
    struct vgpu_engine_ready ready = {
        .argsz = sizeof(ready),
        .num_capsets = ENGINE_NUM_CAPSETS,
        .renderer = ctx->flags & ENGINE_NO_SAVE ? 0
                    : ctx->flags & ENGINE_OTHER ? 2
                                                : 1,
    };
    int ret;

    ctx->fd = open(node, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (ctx->fd < 0)
        return -errno;
    if (ctx->flags & ENGINE_NO_ATTACH)
        return 0;
    ret = engine_ioctl(ctx, VGPU_ENGINE_ATTACH, NULL);
    if (!ret && !(ctx->flags & ENGINE_NOT_READY))
        ret = engine_ioctl(ctx, VGPU_ENGINE_READY, &ready);
    return ret;
}

int engine_replace(EngineCtx *ctx)
{
    int old = ctx->fd, ret = attach_engine(ctx);

    if (ctx->fd >= 0) {
        dup3(ctx->fd, old, O_CLOEXEC);
        close(ctx->fd);
    }
    ctx->fd = old;
    return ret;
}

static void handle_reset(EngineCtx *ctx, uint64_t epoch)
{
    struct vgpu_engine_epoch done = {.argsz = sizeof(done), .epoch = epoch};

    ctx->nheld = 0;
    atomic_store(&ctx->state->reset_epoch, epoch);
    atomic_fetch_add(&ctx->state->resets, 1);
    if (atomic_load(&ctx->state->hold) & ENGINE_HOLD_RESET)
        return;
    if (engine_ioctl(ctx, VGPU_ENGINE_RESET_DONE, &done) == -ENOTCONN)
        note_error(ctx, engine_replace(ctx));
}

static void fill_state(uint8_t state[ENGINE_STATE_SIZE])
{
    for (unsigned i = 0; i < ENGINE_STATE_SIZE; i++)
        state[i] = (uint8_t)i;
}

static void handle_save(EngineCtx *ctx)
{
    uint8_t state[ENGINE_STATE_SIZE];
    struct vgpu_engine_state save = {
        .argsz = sizeof(save),
        .epoch = engine_epoch(ctx),
        .buf = (uintptr_t)state,
        .size = sizeof(state),
    };

    fill_state(state);
    atomic_fetch_add(&ctx->state->saves, 1);
    if (!(atomic_load(&ctx->state->hold) & ENGINE_HOLD_SAVE))
        note_error(ctx, engine_ioctl(ctx, VGPU_ENGINE_STATE_SAVE, &save));
}

static void handle_load(EngineCtx *ctx)
{
    uint8_t state[ENGINE_STATE_SIZE], found[ENGINE_STATE_SIZE] = {0};
    struct vgpu_engine_state load = {.argsz = sizeof(load), .epoch = engine_epoch(ctx)};
    int ret = engine_ioctl(ctx, VGPU_ENGINE_STATE_LOAD, &load);

    /* The first call says how much it is. */
    if (ret != -EMSGSIZE || load.size != sizeof(found)) {
        note_error(ctx, ret ? ret : -EBADMSG);
        return;
    }
    load.buf = (uintptr_t)found;
    note_error(ctx, engine_ioctl(ctx, VGPU_ENGINE_STATE_LOAD, &load));
    fill_state(state);
    if (!memcmp(state, found, sizeof(found)))
        atomic_fetch_add(&ctx->state->loads, 1);
}

static void handle_events(EngineCtx *ctx)
{
    struct vgpu_engine_event event;
    ssize_t n = read(ctx->fd, &event, sizeof(event));

    if (n < 0) {
        if (errno != EAGAIN)
            ctx->hung_up = true;
        return;
    }
    if (n != sizeof(event)) {
        note_error(ctx, -EIO);
        return;
    }
    if (event.events & VGPU_EVENT_CONFIG)
        atomic_fetch_add(&ctx->state->configs, 1);
    if (event.events & VGPU_EVENT_RESET)
        handle_reset(ctx, event.epoch);
    if (event.events & VGPU_EVENT_LOAD)
        handle_load(ctx);
    if (event.events & VGPU_EVENT_SAVE)
        handle_save(ctx);
    if (event.events & VGPU_EVENT_KICK) {
        atomic_fetch_add(&ctx->state->kicks, 1);
        for (unsigned q = 0; q < VGPU_NUM_QUEUES; q++) {
            if (event.queues & (1u << q) && !(atomic_load(&ctx->state->hold) & ENGINE_HOLD_QUEUES))
                engine_serve_queue(ctx, q);
        }
    }
    if (event.events & VGPU_EVENT_REMOVED)
        atomic_fetch_add(&ctx->state->removed, 1);
}

/* False if the test is gone or wants us to end. */
static bool handle_call(EngineCtx *ctx)
{
    static Message msg;
    ssize_t n = recv(ctx->sock, &msg, sizeof(msg), 0);

    if (n < (ssize_t)MESSAGE_HEAD || !msg.fn)
        return false;
    msg.ret = msg.fn(ctx, msg.arg);
    return send(ctx->sock, &msg, MESSAGE_HEAD + msg.size, 0) > 0;
}

static void run_loop(EngineCtx *ctx)
{
    for (;;) {
        bool deaf = ctx->hung_up || ctx->fd < 0 ||
                    atomic_load(&ctx->state->hold) & (ENGINE_HOLD_EVENTS | ENGINE_NO_ATTACH);
        struct pollfd pfd[2] = {
            {.fd = ctx->sock, .events = POLLIN},
            {.fd = deaf ? -1 : ctx->fd, .events = POLLIN},
        };

        /* The timeout is for changes of state->hold by the test meanwhile. */
        if (poll(pfd, 2, 20) < 0 && errno != EINTR)
            return;
        if (pfd[1].revents & POLLIN)
            handle_events(ctx);
        else if (pfd[1].revents) {
            atomic_fetch_add(&ctx->state->hangups, 1);
            ctx->hung_up = true;
        }
        if (pfd[0].revents && !handle_call(ctx))
            return;
    }
}

static void engine_main(int sock, EngineState *state, const char *uuid, unsigned flags)
{
    static EngineCtx ctx;
    Message hello = {0};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "fake-engine");
    /* Otherwise the test's open files would stay open in this process. */
    dup3(sock, 3, O_CLOEXEC);
    close_range(4, ~0u, 0);

    ctx.uuid = uuid;
    ctx.flags = flags;
    ctx.sock = 3;
    ctx.state = state;
    ctx.request = g_malloc(BUFFER_SIZE);
    ctx.response = g_malloc(BUFFER_SIZE);
    hello.ret = attach_engine(&ctx);
    if (send(ctx.sock, &hello, MESSAGE_HEAD, 0) < 0 || hello.ret)
        _exit(1);
    run_loop(&ctx);
    close(ctx.fd);
    _exit(0);
}

static void reap_peer(EnginePeer *peer)
{
    while (waitpid(peer->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    close(peer->sock);
    munmap(peer->state, sizeof(*peer->state));
    g_free(peer);
}

EnginePeer *engine_peer_try_start(const char *uuid, unsigned flags, int *error)
{
    EnginePeer *peer = g_new0(EnginePeer, 1);
    Message hello;
    int pair[2];

    peer->state =
        mmap(NULL, sizeof(*peer->state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_assert_true(peer->state != MAP_FAILED);
    atomic_store(&peer->state->hold, flags);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), ==, 0);

    peer->pid = fork();
    g_assert_cmpint(peer->pid, >=, 0);
    if (peer->pid == 0)
        engine_main(pair[1], peer->state, uuid, flags);
    close(pair[1]);
    peer->sock = pair[0];

    *error =
        recv(peer->sock, &hello, sizeof(hello), 0) < (ssize_t)MESSAGE_HEAD ? -EPIPE : hello.ret;
    if (*error) {
        reap_peer(peer);
        return NULL;
    }
    return peer;
}

EnginePeer *engine_peer_start(const char *uuid, unsigned flags)
{
    int error;
    EnginePeer *peer = engine_peer_try_start(uuid, flags, &error);

    if (!peer)
        g_error("engine of vGPU %s: %s", uuid, g_strerror(-error));
    return peer;
}

void engine_peer_stop(EnginePeer *peer)
{
    shutdown(peer->sock, SHUT_RDWR);
    reap_peer(peer);
}

void engine_peer_kill(EnginePeer *peer)
{
    kill(peer->pid, SIGKILL);
    reap_peer(peer);
}

int engine_peer_call(EnginePeer *peer, EngineCall fn, void *arg, size_t size)
{
    g_autofree Message *msg = g_malloc(sizeof(*msg));

    g_assert_cmpuint(size, <=, CALL_MAX);
    msg->fn = fn;
    msg->size = (uint32_t)size;
    msg->ret = 0;
    if (size)
        memcpy(msg->arg, arg, size);
    if (send(peer->sock, msg, MESSAGE_HEAD + size, MSG_NOSIGNAL) < 0)
        return -EPIPE;
    if (recv(peer->sock, msg, sizeof(*msg), 0) < (ssize_t)MESSAGE_HEAD)
        return -EPIPE;
    if (size)
        memcpy(arg, msg->arg, size);
    return msg->ret;
}

static int call_nothing(EngineCtx *ctx, void *arg)
{
    (void)ctx;
    (void)arg;
    return 0;
}

void engine_peer_hold(EnginePeer *peer, unsigned int what)
{
    atomic_store(&peer->state->hold, what);
    /* The engine reads it before it waits, and comes back there after a call. */
    g_assert_cmpint(engine_peer_call(peer, call_nothing, NULL, 0), ==, 0);
}
