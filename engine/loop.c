// SPDX-License-Identifier: MIT
#include "loop.h"

#include "children.h"
#include "context.h"
#include "engine.h"
#include "exit_code.h"
#include "parking.h"
#include "poller.h"
#include "queue.h"
#include "shader_cache.h"
#include "state.h"
#include "stuck.h"
#include "watch.h"
#include "watchdog.h"

#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Turns of a busy loop until it looks at what does not come from the driver. */
#define BUSY_TURNS 16

#define PROBE_INTERVAL_MS 5000

/* See venus_rings.h. */
#define ENOUGH_RESTS 2

#define WORKERS_END G_TIME_SPAN_SECOND

static int wakeup_fd = -1;
static volatile sig_atomic_t terminated;
static volatile sig_atomic_t child_died;

static void on_signal(int signum)
{
    int saved = errno;
    uint64_t one = 1;

    if (signum == SIGCHLD)
        child_died = 1;
    else
        terminated = 1;
    if (write(wakeup_fd, &one, sizeof(one)) < 0) {
        /* EAGAIN: it is awake already. */
    }
    errno = saved;
}

/*
 * Handlers and not a signalfd: that one requires blocked signals, and the render server would
 * inherit the mask and ignore SIGTERM.
 */
bool loop_setup(GError **error)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGCHLD};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wakeup_fd < 0) {
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_INTERNAL, "eventfd: %s", g_strerror(errno));
        return false;
    }
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < G_N_ELEMENTS(signals); i++)
        sigaction(signals[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    return true;
}

static bool is_known(pid_t pid, const void *data)
{
    const struct engine *engine = data;

    return pid == engine->render_server || cuda_host_knows(&engine->cuda, pid);
}

/* What workers have left behind: they end with their contexts, and so must that. */
static unsigned int kill_strays(const struct engine *engine)
{
    return engine->render_server || !engine->has_renderer ? children_kill(is_known, engine) : 0;
}

/* Without the render server no context works and none can be made. */
static bool check_children(struct engine *engine, GError **error)
{
    int status;
    pid_t pid;

    child_died = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (cuda_host_reaped(&engine->cuda, pid)) {
            fence_release(&engine->fences);
            continue;
        }
        if (!engine->has_renderer || (engine->render_server && pid != engine->render_server))
            continue;
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_RENDERER,
                    WIFSIGNALED(status) ? "the render server was killed by signal %d"
                                        : "the render server ended with status %d",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        return false;
    }
    kill_strays(engine);
    return true;
}

/*
 * After the guest's contexts. virglrenderer only sends a message to its server for each, and what
 * its workers write until they end would be left for the next boot. What was killed and does not
 * end, because the GPU's driver holds it, runs no program any more. But the GPU may still have
 * memory of the guest's that was lent to a CUDA worker: the reset has to wait for that, or the
 * driver gives up.
 */
static bool end_workers(struct engine *engine, GError **error)
{
    gint64 until = g_get_monotonic_time() + WORKERS_END;
    unsigned int borrowers, left;

    do {
        if (!check_children(engine, error))
            return false;
        left = cuda_host_kill(&engine->cuda, &borrowers) + kill_strays(engine);
        if (engine->render_server)
            left += children_kill_of(engine->render_server);
        if (left)
            g_usleep(1000);
    } while (borrowers || (left && g_get_monotonic_time() < until));
    return true;
}

static bool refresh_info(struct engine *engine, GError **error)
{
    struct vgpu_transport *transport = engine->transport;
    int ret = transport->ops->info(transport, &engine->info);

    if (ret < 0) {
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_DEVICE, "the driver does not answer: %s",
                    g_strerror(-ret));
        return false;
    }
    engine->epoch = engine->info.epoch;
    return true;
}

/* ESTALE, ENOTCONN: the driver has given this engine up, because it was too slow or by force. */
static int exit_code_of_errno(int ret)
{
    return ret == -ESTALE || ret == -ENOTCONN ? EXIT_CODE_LOST : EXIT_CODE_DEVICE;
}

/* The VM has ended, and the vGPU is still there for the next one. */
static bool is_closed(struct engine *engine)
{
    struct vgpu_transport *transport = engine->transport;
    struct vgpu_engine_info info;

    return transport->ops->info(transport, &info) == 0 &&
           !(info.state & (VGPU_STATE_OPEN | VGPU_STATE_REMOVED));
}

/*
 * The next VM may be another customer's, and whatever this one's guest has made of its workers must
 * not serve it. So this engine ends, and its unit with all of its processes. It does not answer the
 * reset: an answer would let the next VM open the device before its engine is there.
 */
static bool close_engine(struct engine *engine, bool *stop)
{
    engine->closed = true;
    *stop = true;
    return true;
}

static bool handle_reset(struct engine *engine, uint64_t epoch, bool *stop, GError **error)
{
    struct vgpu_transport *transport = engine->transport;
    int ret;

    if (is_closed(engine))
        return close_engine(engine, stop);
    engine_reset(engine);
    if (!end_workers(engine, error))
        return false;
    /* The next driver of the device may be another VM's. */
    if (!shader_cache_empty()) {
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_INTERNAL,
                    "the compiled shaders cannot be removed");
        return false;
    }
    ret = transport->ops->reset_done(transport, epoch);
    /* It was closed meanwhile, so another reset is awaited. */
    if (ret == -ESTALE && is_closed(engine))
        return close_engine(engine, stop);
    if (ret < 0) {
        g_set_error(error, ENGINE_ERROR, exit_code_of_errno(ret),
                    "the driver did not accept the reset: %s", g_strerror(-ret));
        return false;
    }
    return refresh_info(engine, error);
}

/* The VM is stopped and is to be saved; it may also go on here. */
static void handle_save(struct engine *engine)
{
    struct vgpu_transport *transport = engine->transport;
    g_autoptr(GByteArray) state = g_byte_array_new();
    int ret;

    state_save(engine, state);
    ret = transport->ops->state_save(transport, engine->epoch, state->data, state->len);
    if (ret < 0)
        g_warning("the VM cannot be saved: the driver does not take the GPU's state, %u bytes: %s",
                  state->len, g_strerror(-ret));
}

/*
 * Whatever was saved: the engine goes on. The guest can reset the device, and then the state is
 * gone before it was read; and systemd would not start an engine again that ends because of it.
 */
static void handle_load(struct engine *engine)
{
    struct vgpu_transport *transport = engine->transport;
    g_autoptr(GError) error = NULL;
    g_autofree uint8_t *state = NULL;
    uint64_t size = 0;
    int ret = transport->ops->state_load(transport, engine->epoch, NULL, &size);

    if (ret == -EMSGSIZE && size <= VGPU_STATE_MAX) {
        state = g_malloc(size);
        ret = transport->ops->state_load(transport, engine->epoch, state, &size);
    }
    if (ret == 0 && !state_load(engine, state, size, &error))
        g_warning("%s; what the guest had is lost", error->message);
}

bool loop_handle_event(struct engine *engine, const struct vgpu_engine_event *event, bool *stop,
                       GError **error)
{
    if (event->events & VGPU_EVENT_REMOVED) {
        *stop = true;
        return true;
    }
    if ((event->events & VGPU_EVENT_RESET) && !handle_reset(engine, event->epoch, stop, error))
        return false;
    if (*stop)
        return true;
    if (event->events & VGPU_EVENT_CONFIG) {
        /* It may change limits at any time, but only a reset changes the epoch of our objects. */
        uint64_t epoch = engine->epoch;

        if (!refresh_info(engine, error))
            return false;
        engine->epoch = epoch;
    }
    /* A reset before the guest used the device makes a new epoch without an event. */
    if ((event->events & VGPU_EVENT_KICK) && event->epoch > engine->epoch &&
        !refresh_info(engine, error))
        return false;
    if (event->events & VGPU_EVENT_LOAD)
        handle_load(engine);
    if (event->events & VGPU_EVENT_SAVE)
        handle_save(engine);
    return true;
}

/**
 * struct probes - checks of contexts
 * @last: when, in ms
 * @requests: what engine->requests was then
 */
struct probes {
    gint64 last;
    uint64_t requests;
};

/* Checks contexts when it is time; returns how long the loop may sleep until then, in ms. */
static uint32_t probe_contexts(struct engine *engine, struct probes *probes)
{
    gint64 now = g_get_monotonic_time() / 1000;

    if (engine->requests != probes->requests)
        engine->rests = 0;
    probes->requests = engine->requests;
    if (g_hash_table_size(engine->contexts) == 0 || engine->rests >= ENOUGH_RESTS) {
        probes->last = now;
        return VGPU_EXCHANGE_FOREVER;
    }
    if (now - probes->last >= PROBE_INTERVAL_MS) {
        probes->last = now;
        stuck_watch_begin(engine);
        engine->rests = watch_contexts(engine) ? engine->rests + 1 : 0;
    }
    return engine->rests >= ENOUGH_RESTS ? VGPU_EXCHANGE_FOREVER
                                         : (uint32_t)(probes->last + PROBE_INTERVAL_MS - now);
}

/**
 * struct work - of the loop
 * @queues: to look at in the next turn
 * @wait_ms: how long that may sleep; VGPU_EXCHANGE_FOREVER is more than all else
 * @turns: since other threads were last heeded
 */
struct work {
    struct poller poller;
    struct probes probes;
    uint32_t queues;
    uint32_t wait_ms;
    unsigned int turns;
};

/* What is to be done next, and when. */
static void plan_turn(struct engine *engine, struct work *work, uint32_t queues)
{
    uint32_t watchdog = (uint32_t)watchdog_sleep();

    /* An answer that waits for the next exchange, or a guest that will soon send more. */
    if (fence_kept(&engine->fences) || poller_time(&work->poller, g_get_monotonic_time()) > 0)
        queues |= 1u << VGPU_QUEUE_CONTROL;
    work->queues = queues;
    work->wait_ms = probe_contexts(engine, &work->probes);
    work->wait_ms = MIN(work->wait_ms, watchdog);
}

/* Gives the driver the last answer, and sleeps until there is something to do. */
static bool take_turn(struct engine *engine, struct work *work, struct queue_turn *taken,
                      GError **error)
{
    int ret;

    *taken = (struct queue_turn){
        .queues = work->queues,
        .room = VGPU_EXCHANGE_MAX,
        .wait_ms = work->wait_ms,
    };
    /* Nothing but the driver's events ends that, so parked commands do not wait for it. */
    if (engine->parking.requests.length == 0)
        taken->poll_us = (uint32_t)poller_time(&work->poller, g_get_monotonic_time());
    ret = queue_take(engine, taken);
    if (ret < 0)
        g_set_error(error, ENGINE_ERROR, exit_code_of_errno(ret), "cannot read events: %s",
                    g_strerror(-ret));
    return ret == 0;
}

/* What was taken, and what other threads and processes have reported. */
static bool handle_turn(struct engine *engine, struct work *work, const struct queue_turn *taken,
                        bool *stop, GError **error)
{
    if (taken->state & VGPU_EXCHANGE_WOKEN || ++work->turns >= BUSY_TURNS) {
        work->turns = 0;
        watch_lost(engine);
    }
    if (terminated)
        *stop = true;
    if ((child_died && !check_children(engine, error)) ||
        (!*stop && !loop_handle_event(engine, &taken->event, stop, error)))
        return false;
    if (*stop)
        return true;
    if (fence_released(&engine->fences))
        parking_run(engine);
    queue_handle(engine, taken);
    if (taken->count > 0)
        poller_seen(&work->poller, g_get_monotonic_time());
    /* Of an epoch that is over; after a reset all is new, and before it there is nothing to do. */
    plan_turn(engine, work,
              taken->state & VGPU_EXCHANGE_STALE ? taken->event.queues : taken->queues);
    return true;
}

static bool run_turns(struct engine *engine, GError **error)
{
    /* The guest may have been there before this engine. */
    struct work work = {.queues = (1u << VGPU_NUM_QUEUES) - 1};
    struct queue_turn taken;
    bool stop = false, ok;

    if (!lifelines_wake_by(&engine->lifelines, wakeup_fd)) {
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_INTERNAL, "epoll: %s", g_strerror(errno));
        return false;
    }
    watchdog_setup();
    engine->fences.wake_fd = wakeup_fd;
    while (!stop) {
        if (!take_turn(engine, &work, &taken, error))
            return false;
        /* What has come may hang. The timer would wake an engine that sleeps every 5 s. */
        if (taken.count || taken.event.events || taken.state & VGPU_EXCHANGE_WOKEN ||
            fence_released(&engine->fences))
            stuck_watch_begin(engine);
        ok = handle_turn(engine, &work, &taken, &stop, error);
        stuck_watch_end();
        if (!ok)
            return false;
        watchdog_alive(g_get_monotonic_time());
    }
    return true;
}

/*
 * Without the engine the driver answers all pending requests. By then the guest's rings say what
 * that means.
 */
bool loop_run(struct engine *engine, GError **error)
{
    bool ok = run_turns(engine, error);

    fence_flush(&engine->fences, engine->epoch);
    if (!engine->closed)
        context_fail_all_rings(engine);
    return ok;
}
