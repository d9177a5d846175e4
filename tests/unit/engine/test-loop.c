// SPDX-License-Identifier: MIT
/* The main loop: how it wakes, and each way in which it ends. And transfers, which only need an
 * answer. */
#include "fixture.h"

#include "children.h"
#include "exit_code.h"
#include "loop.h"
#include "parking.h"
#include "queue.h"
#include "shader_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_EVENTS 4

/* The driver's events, and then this error forever. */
static struct {
    struct vgpu_engine_event events[MOST_EVENTS];
    unsigned int count;
    unsigned int taken;
    int error;
} story;

static struct vgpu_transport_ops ops;

/* A reset of the guest's begins a new epoch. */
static int read_story(struct fake_driver *driver, struct vgpu_engine_event *event)
{
    struct pollfd fd = {.fd = driver->base.fd, .events = POLLIN};

    if (poll(&fd, 1, 0) <= 0)
        return -EAGAIN;
    if (story.taken == story.count)
        return story.error;
    *event = story.events[story.taken++];
    if (event->events & VGPU_EVENT_RESET)
        driver->info.epoch++;
    return 0;
}

static void tell_engine(struct fixture *f, unsigned int count,
                        const struct vgpu_engine_event *events, int error)
{
    memset(&story, 0, sizeof(story));
    memcpy(story.events, events, count * sizeof(*events));
    story.count = count;
    story.error = error;
    ops = *f->driver.base.ops;
    f->driver.base.ops = &ops;
    f->driver.next_event = read_story;
    f->driver.base.fd = eventfd(1, EFD_CLOEXEC); /* always readable */
    g_assert_cmpint(f->driver.base.fd, >=, 0);
    g_assert_true(loop_setup(NULL));
}

static void end_loop(struct fixture *f)
{
    close(f->driver.base.fd);
}

static void assert_ends(struct fixture *f, int code, const char *why)
{
    g_autoptr(GError) error = NULL;

    g_assert_false(loop_run(&f->engine, &error));
    g_assert_error(error, ENGINE_ERROR, code);
    g_test_message("%s", error->message);
    g_assert_nonnull(strstr(error->message, why));
    end_loop(f);
}

/* The device's next driver may be another VM's. */
static void test_cache(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    g_autofree char *cache = g_dir_make_tmp("shaders-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(cache, "compiled", NULL);

    const struct vgpu_engine_event events[] = {
        {.events = VGPU_EVENT_RESET, .epoch = f->engine.epoch},
        {.events = VGPU_EVENT_REMOVED},
    };

    shader_cache_use(cache);
    g_assert_true(g_file_set_contents(file, "", 0, NULL));
    tell_engine(f, G_N_ELEMENTS(events), events, -EIO);
    g_assert_true(loop_run(&f->engine, NULL));
    shader_cache_use(NULL);
    g_assert_cmpint(g_access(file, F_OK), <, 0);
    g_assert_no_errno(g_rmdir(cache));
    end_loop(f);
}

/* The next engine has another one. */
static void test_cache_stays(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    g_autofree char *cache = g_dir_make_tmp("shaders-XXXXXX", NULL);
    const struct vgpu_engine_event reset = {.events = VGPU_EVENT_RESET, .epoch = f->engine.epoch};

    shader_cache_use(cache);
    g_assert_no_errno(g_rmdir(cache));
    g_assert_true(g_file_set_contents(cache, "no folder", -1, NULL));
    tell_engine(f, 1, &reset, -EIO);
    assert_ends(f, EXIT_CODE_INTERNAL, "compiled shaders");
    g_assert_cmpuint(f->driver.reset_dones, ==, 0);
    g_assert_no_errno(g_unlink(cache));
    shader_cache_use(NULL);
}

/* What was in the queue before, what comes with a kick, a reset in between, and the end. */
static void test_events(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctx_create cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = 1},
        .context_init = VIRTIO_GPU_CAPSET_VENUS,
    };
    const struct vgpu_engine_event events[] = {
        {.events = VGPU_EVENT_KICK, .queues = 1u << VGPU_QUEUE_CONTROL, .epoch = f->engine.epoch},
        {.events = VGPU_EVENT_CONFIG, .epoch = f->engine.epoch},
        {.events = VGPU_EVENT_RESET, .epoch = f->engine.epoch},
        {.events = VGPU_EVENT_REMOVED},
    };
    uint32_t before =
        fake_driver_send(&f->driver, VGPU_QUEUE_CONTROL, &cmd, sizeof(cmd), ANSWER_ROOM);

    tell_engine(f, G_N_ELEMENTS(events), events, -EIO);
    g_assert_true(loop_run(&f->engine, NULL));
    g_assert_cmphex(fixture_answer_type(f, before), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(story.taken, ==, G_N_ELEMENTS(events));
    g_assert_cmpuint(f->driver.reset_dones, ==, 1);
    g_assert_cmpuint(g_hash_table_size(f->engine.contexts), ==, 0);
    end_loop(f);
}

/*
 * The VMM has closed the device: what the guest had is left to the process' end. Whoever opens it
 * next waits for another engine, so nothing is answered.
 */
static void test_closed(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    const struct vgpu_engine_event reset = {.events = VGPU_EVENT_RESET, .epoch = f->engine.epoch};

    fixture_create_context(f, 1);
    f->driver.info.state = 0;
    tell_engine(f, 1, &reset, -EIO);
    g_assert_true(loop_run(&f->engine, NULL));
    g_assert_true(f->engine.closed);
    g_assert_cmpuint(f->driver.reset_dones, ==, 0);
    g_assert_cmpuint(g_hash_table_size(f->engine.contexts), ==, 1);
    end_loop(f);
}

static int reset_done_late(struct vgpu_transport *transport, uint64_t epoch G_GNUC_UNUSED)
{
    ((struct fake_driver *)transport)->info.state = 0;
    return -ESTALE;
}

/* It is closed while the engine is busy with a reset of the guest's. */
static void test_closed_meanwhile(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    const struct vgpu_engine_event reset = {.events = VGPU_EVENT_RESET, .epoch = f->engine.epoch};

    tell_engine(f, 1, &reset, -EIO);
    ops.reset_done = reset_done_late;
    g_assert_true(loop_run(&f->engine, NULL));
    g_assert_true(f->engine.closed);
    end_loop(f);
}

/* A removed vGPU needs no other engine. */
static void test_closed_and_removed(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    const struct vgpu_engine_event events[] = {
        {.events = VGPU_EVENT_RESET, .epoch = f->engine.epoch},
        {.events = VGPU_EVENT_REMOVED},
    };

    f->driver.info.state = VGPU_STATE_REMOVED;
    tell_engine(f, G_N_ELEMENTS(events), events, -EIO);
    g_assert_true(loop_run(&f->engine, NULL));
    g_assert_false(f->engine.closed);
    end_loop(f);
}

static void test_driver_fails(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    tell_engine(f, 0, story.events, -EIO);
    assert_ends(f, EXIT_CODE_DEVICE, "cannot read events");
    tell_engine(f, 0, story.events, -ESTALE);
    assert_ends(f, EXIT_CODE_LOST, "cannot read events");
    tell_engine(f, 0, story.events, -ENOTCONN);
    assert_ends(f, EXIT_CODE_LOST, "cannot read events");
}

static void child_ends(struct fixture *f, int status, const char *why)
{
    pid_t pid;

    tell_engine(f, 0, story.events, -EAGAIN);
    pid = fork();
    if (pid == 0) {
        if (status < 0)
            kill(getpid(), -status);
        _exit(status);
    }
    assert_ends(f, EXIT_CODE_RENDERER, why);
}

/* The render server is the one child of an engine. */
static void test_child(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    child_ends(f, 3, "the render server ended with status 3");
    child_ends(f, -SIGKILL, "the render server was killed by signal 9");
}

/*
 * A render server, whose worker ends and leaves a process behind. @life is open as long as that
 * lives, @ready until it has been left.
 */
static void serve_and_leave(const int *life, const int *ready)
{
    pid_t worker = fork();

    if (worker == 0) {
        if (fork() == 0) {
            close(ready[1]);
            for (;;)
                pause();
        }
        _exit(0);
    }
    close(life[1]);
    waitpid(worker, NULL, 0);
    close(ready[1]);
    for (;;)
        pause();
}

/* A reset of the guest's ends what its workers have left behind, and not the render server. */
static void test_strays(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    const struct vgpu_engine_event events[] = {
        {.events = VGPU_EVENT_RESET, .epoch = f->engine.epoch},
        {.events = VGPU_EVENT_REMOVED},
    };
    int life[2], ready[2];
    char byte;
    pid_t server;

    g_assert_no_errno(pipe(life));
    g_assert_no_errno(pipe(ready));
    server = fork();
    if (server == 0)
        serve_and_leave(life, ready);
    close(life[1]);
    close(ready[1]);
    g_assert_cmpint(read(ready[0], &byte, 1), ==, 0);

    f->engine.render_server = server;
    tell_engine(f, G_N_ELEMENTS(events), events, -EIO);
    g_assert_true(loop_run(&f->engine, NULL));
    g_assert_cmpint(read(life[0], &byte, 1), ==, 0);
    g_assert_cmpint(waitpid(server, NULL, WNOHANG), ==, 0);

    kill(server, SIGKILL);
    while (wait(NULL) > 0) {
        /* The left one, if the loop has not seen it. */
    }
    close(life[0]);
    close(ready[0]);
    end_loop(f);
}

/* A render server with a worker that keeps compiling shaders. */
static void serve_and_compile(const int *ready, const char *cache)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (unsigned int i = 0;; i++) {
            g_autofree char *path = g_strdup_printf("%s/%u", cache, i % 100);
            int fd = creat(path, 0600);

            if (fd >= 0)
                close(fd);
            if (i == 0 && write(ready[1], "", 1) != 1)
                _exit(1);
        }
    }
    wait(NULL);
    for (;;)
        pause();
}

/* The last boot's workers still write when the guest resets the device. */
static void test_cache_written(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    const struct vgpu_engine_event events[] = {
        {.events = VGPU_EVENT_RESET, .epoch = f->engine.epoch},
        {.events = VGPU_EVENT_REMOVED},
    };
    g_autofree char *cache = g_dir_make_tmp("shaders-XXXXXX", NULL);
    g_autoptr(GError) error = NULL;
    int ready[2];
    char byte;

    shader_cache_use(cache);
    g_assert_no_errno(pipe(ready));
    f->engine.render_server = fork();
    if (f->engine.render_server == 0)
        serve_and_compile(ready, cache);
    g_assert_cmpint(read(ready[0], &byte, 1), ==, 1);

    tell_engine(f, G_N_ELEMENTS(events), events, -EIO);
    g_assert_true(loop_run(&f->engine, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(children_kill_of(f->engine.render_server), ==, 0);
    g_assert_no_errno(rmdir(cache)); /* it is empty, and stays so */

    kill(f->engine.render_server, SIGKILL);
    g_assert_cmpint(wait(NULL), ==, f->engine.render_server);
    shader_cache_use(NULL);
    close(ready[0]);
    close(ready[1]);
    end_loop(f);
}

/*
 * The worker finishes its messages, and when the parked commands are answered, the vGPU is removed.
 */
static void *release_worker(void *data)
{
    struct fixture *f = data;
    uint64_t one = 1;

    while (g_atomic_int_get(&f->engine.fences.wake_fd) < 0)
        g_usleep(1000);
    g_usleep(20000); /* likely asleep by now */
    fake_virgl_signal(0);
    for (int i = 0; i < 20000 && fake_driver_waiting(&f->driver); i++)
        g_usleep(1000);
    g_assert_cmpint(write(f->driver.base.fd, &one, sizeof(one)), ==, sizeof(one));
    return NULL;
}

/* A blob for a context that has commands on the way, so it waits. */
static uint32_t park_blob(struct fixture *f, uint32_t resource)
{
    struct virtio_gpu_resource_create_blob blob = {
        .hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = 1},
        .resource_id = resource,
        .blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D,
        .blob_id = 1,
        .size = ENGINE_PAGE_SIZE,
    };
    struct {
        struct virtio_gpu_cmd_submit cmd;
        uint32_t words[2];
    } submit = {.cmd = {.hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = 1},
                        .size = sizeof(submit.words)}};
    uint32_t token;

    fixture_create_context(f, 1);
    fixture_send(f, &submit, sizeof(submit));
    token = fixture_send(f, &blob, sizeof(blob));
    g_assert_cmphex(fixture_answer_type(f, token), ==, 0);
    return token;
}

/* Parked commands continue without any event of the driver. */
static void test_released(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    const struct vgpu_engine_event removed = {.events = VGPU_EVENT_REMOVED};
    uint32_t parked = park_blob(f, 1);
    GThread *thread;
    uint64_t count;

    tell_engine(f, 1, &removed, -EAGAIN);
    g_assert_cmpint(read(f->driver.base.fd, &count, sizeof(count)), ==, sizeof(count));
    f->engine.fences.wake_fd = -1;
    thread = g_thread_new("worker", release_worker, f);
    g_assert_true(loop_run(&f->engine, NULL));
    g_thread_join(thread);
    g_assert_cmphex(fixture_answer_type(f, parked), ==, VIRTIO_GPU_RESP_OK_NODATA);
    end_loop(f);
}

#define MANY 100

/* What the engine calls, and the driver's own functions. */
static struct {
    unsigned int exchanges;
    unsigned int pushes;
    bool inside;
    struct vgpu_transport_ops fake;
} count;

static int count_push(struct vgpu_transport *transport, uint64_t epoch, uint32_t queue,
                      uint32_t token, const void *response, size_t size, int connection)
{
    count.pushes += !count.inside;
    return count.fake.push(transport, epoch, queue, token, response, size, connection);
}

/* A guest that sends a request when the one before is answered. */
static int count_exchange(struct vgpu_transport *transport, struct vgpu_queue_exchange *x)
{
    struct virtio_gpu_ctrl_hdr cmd = {.type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO};
    struct fake_driver *driver = (struct fake_driver *)transport;
    int ret;

    count.exchanges++;
    if ((x->nanswers || driver->last_token == 0) && driver->last_token < MANY)
        fake_driver_send(driver, VGPU_QUEUE_CONTROL, &cmd, sizeof(cmd), ANSWER_ROOM);
    count.inside = true;
    ret = count.fake.exchange(transport, x);
    count.inside = false;
    return ret;
}

static int removed_at_last(struct fake_driver *driver, struct vgpu_engine_event *event)
{
    if (driver->last_token < MANY || fake_driver_waiting(driver))
        return -EAGAIN;
    event->events = VGPU_EVENT_REMOVED;
    return 0;
}

/* An answer and the next request are one call of the driver. */
static void test_one_call_each(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    tell_engine(f, 0, story.events, -EAGAIN);
    count.fake = ops;
    ops.exchange = count_exchange;
    ops.push = count_push;
    f->driver.next_event = removed_at_last;
    g_assert_true(loop_run(&f->engine, NULL));
    g_assert_cmpuint(fake_driver_waiting(&f->driver), ==, 0);
    g_assert_cmpuint(count.pushes, ==, 0);
    g_assert_cmpuint(count.exchanges, <=, MANY + 3);
    end_loop(f);
}

/* The guest sends a request whenever the engine is about to sleep. */
static int send_to_sleeper(struct vgpu_transport *transport, struct vgpu_queue_exchange *x)
{
    struct virtio_gpu_ctrl_hdr cmd = {.type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO};
    struct fake_driver *driver = (struct fake_driver *)transport;
    struct vgpu_queue_exchange in = *x;
    int ret;

    count.exchanges++;
    in.nanswers = 0;
    x->wait_ms = 0;
    ret = count.fake.exchange(transport, x);
    if (ret < 0 || x->nrequests || x->event.events || !in.wait_ms || driver->last_token == MANY)
        return ret;
    fake_driver_send(driver, VGPU_QUEUE_CONTROL, &cmd, sizeof(cmd), ANSWER_ROOM);
    in.queues = 1u << VGPU_QUEUE_CONTROL;
    *x = in;
    return count.fake.exchange(transport, x);
}

/* The call that gives the last answer sleeps, too, and brings the request that it was woken by. */
static void test_lone_requests(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    tell_engine(f, 0, story.events, -EAGAIN);
    memset(&count, 0, sizeof(count));
    count.fake = ops;
    ops.exchange = send_to_sleeper;
    f->driver.next_event = removed_at_last;
    g_assert_true(loop_run(&f->engine, NULL));
    g_assert_cmpuint(fake_driver_waiting(&f->driver), ==, 0);
    g_assert_cmpuint(f->driver.last_token, ==, MANY);
    g_assert_cmpuint(count.exchanges, <=, MANY + 3);
    end_loop(f);
}

/* The hang check's timer ends while the engine sleeps, which wakes it. */
static int sleep_past_timer(struct vgpu_transport *transport, struct vgpu_queue_exchange *x)
{
    const struct itimerval off = {0};
    struct itimerval timer;

    count.exchanges += x->wait_ms > 0;
    x->nrequests = x->queues = 0;
    if (!x->wait_ms)
        return count.fake.exchange(transport, x);
    if (count.exchanges == 1) {
        g_assert_no_errno(setitimer(ITIMER_REAL, &off, NULL));
        g_assert_no_errno(raise(SIGALRM));
        return 0;
    }
    g_assert_no_errno(getitimer(ITIMER_REAL, &timer));
    g_assert_cmpint(timer.it_value.tv_sec, ==, 0);
    x->event.events = VGPU_EVENT_REMOVED;
    return 0;
}

/* That is once: the timer is set again only when there is something to do. */
static void test_sleeps_on(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    tell_engine(f, 0, story.events, -EAGAIN);
    memset(&count, 0, sizeof(count));
    count.fake = ops;
    ops.exchange = sleep_past_timer;
    g_assert_true(loop_run(&f->engine, NULL));
    g_assert_cmpuint(count.exchanges, ==, 2);
    end_loop(f);
}

/* An answer is not kept while another command is executed. */
static void test_answers_do_not_wait(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctrl_hdr cmd = {.type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO};
    struct queue_turn turn = {.queues = 1u << VGPU_QUEUE_CONTROL, .room = VGPU_EXCHANGE_MAX};
    uint32_t tokens[3];

    for (size_t i = 0; i < G_N_ELEMENTS(tokens); i++)
        tokens[i] =
            fake_driver_send(&f->driver, VGPU_QUEUE_CONTROL, &cmd, sizeof(cmd), ANSWER_ROOM);
    g_assert_cmpint(queue_take(&f->engine, &turn), ==, 0);
    g_assert_cmpuint(turn.count, ==, G_N_ELEMENTS(tokens));
    queue_handle(&f->engine, &turn);
    g_assert_nonnull(fake_driver_answer(&f->driver, tokens[0]));
    g_assert_nonnull(fake_driver_answer(&f->driver, tokens[1]));
    g_assert_null(fake_driver_answer(&f->driver, tokens[2]));
    turn = (struct queue_turn){.queues = 1u << VGPU_QUEUE_CONTROL, .room = VGPU_EXCHANGE_MAX};
    g_assert_cmpint(queue_take(&f->engine, &turn), ==, 0);
    g_assert_nonnull(fake_driver_answer(&f->driver, tokens[2]));
}

static uint32_t pushed[2];
static unsigned int num_pushed;

static int note_push(struct vgpu_transport *transport, uint64_t epoch, uint32_t queue,
                     uint32_t token, const void *response, size_t size, int connection)
{
    g_assert_cmpuint(num_pushed, <, G_N_ELEMENTS(pushed));
    pushed[num_pushed++] = token;
    return count.fake.push(transport, epoch, queue, token, response, size, connection);
}

static int exchange_nothing(struct vgpu_transport *transport G_GNUC_UNUSED,
                            struct vgpu_queue_exchange *x G_GNUC_UNUSED)
{
    return -ENOMEM;
}

/*
 * The kernel has no memory for the exchange that is to carry an answer. What was parked continues
 * meanwhile, and its answers come after that one.
 */
static void test_no_memory(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctrl_hdr cmd = {.type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO};
    struct queue_turn turn = {.queues = 1u << VGPU_QUEUE_CONTROL, .room = VGPU_EXCHANGE_MAX};
    uint32_t parked = park_blob(f, 1);
    uint32_t kept =
        fake_driver_send(&f->driver, VGPU_QUEUE_CONTROL, &cmd, sizeof(cmd), ANSWER_ROOM);

    ops = *f->driver.base.ops;
    count.fake = ops;
    ops.push = note_push;
    f->driver.base.ops = &ops;
    g_assert_cmpint(queue_take(&f->engine, &turn), ==, 0);
    queue_handle(&f->engine, &turn);
    ops.exchange = exchange_nothing;
    turn.queues = 1u << VGPU_QUEUE_CONTROL;
    g_assert_cmpint(queue_take(&f->engine, &turn), ==, 0);
    g_assert_cmpuint(turn.count, ==, 0);
    g_assert_cmpuint(turn.queues, ==, 1u << VGPU_QUEUE_CONTROL); /* it is looked at again */
    fake_virgl_signal(0);
    parking_run(&f->engine);
    g_assert_cmpuint(num_pushed, ==, 2);
    g_assert_cmpuint(pushed[0], ==, kept);
    g_assert_cmpuint(pushed[1], ==, parked);
}

/* Last, because an order to end is not forgotten. */
static void test_told_to_end(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    tell_engine(f, 0, story.events, -EAGAIN);
    g_assert_cmpint(raise(SIGTERM), ==, 0);
    g_assert_true(loop_run(&f->engine, NULL));
    end_loop(f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    fixture_test("/loop/events", test_events);
    fixture_test("/loop/closed", test_closed);
    fixture_test("/loop/closed-meanwhile", test_closed_meanwhile);
    fixture_test("/loop/closed-and-removed", test_closed_and_removed);
    fixture_test("/loop/shader-cache", test_cache);
    fixture_test("/loop/shader-cache-stays", test_cache_stays);
    fixture_test("/loop/shader-cache-written", test_cache_written);
    fixture_test("/loop/driver-fails", test_driver_fails);
    fixture_test("/loop/child", test_child);
    fixture_test("/loop/strays", test_strays);
    fixture_test("/loop/released", test_released);
    fixture_test("/loop/one-call-each", test_one_call_each);
    fixture_test("/loop/lone-requests", test_lone_requests);
    fixture_test("/loop/sleeps-on", test_sleeps_on);
    fixture_test("/loop/answers-do-not-wait", test_answers_do_not_wait);
    fixture_test("/loop/no-memory", test_no_memory);
    fixture_test("/loop/told-to-end", test_told_to_end);
    return g_test_run();
}
