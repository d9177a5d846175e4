// SPDX-License-Identifier: MIT
/*
 * The cost of requests for the engine's loop, in counts: count-turns REQUESTS GAP_US. A guest sends
 * a request every GAP_US microseconds, and rings only if the engine is not polling, like the
 * driver. Not a test: for tests/bench/RESULTS.md, with strace -c.
 */
#include "fixture.h"

#include "loop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    struct fixture f;
    struct vgpu_transport_ops ops;
    GMutex lock;
    unsigned int requests;
    useconds_t gap;
    unsigned int calls; /* of the driver, and of epoll_wait(): a system call each */
    struct vgpu_transport_ops fake;
    bool inside; /* an exchange */
    unsigned int doorbells;
    bool engine_looks;
    bool end;
} run;

/* True: the exchange ends. @last: of its looks, so the guest rings from now on. */
static bool look_once(struct vgpu_transport *transport, struct vgpu_queue_exchange *x,
                      struct vgpu_queue_exchange *in, bool last, int *ret)
{
    g_mutex_lock(&run.lock);
    *x = *in;
    x->wait_ms = 0;
    run.inside = true;
    *ret = run.fake.exchange(transport, x);
    run.inside = false;
    in->nanswers = 0;
    run.engine_looks = !last || x->queues;
    g_mutex_unlock(&run.lock);
    return *ret < 0 || x->nrequests || x->event.events;
}

/* Looks and sleeps until there is something, like the driver. */
static int count_exchange(struct vgpu_transport *transport, struct vgpu_queue_exchange *x)
{
    gint64 end = g_get_monotonic_time() + x->poll_us;
    struct vgpu_queue_exchange in = *x;
    int ret;

    run.calls++;
    while (in.poll_us && g_get_monotonic_time() < end) {
        if (look_once(transport, x, &in, false, &ret))
            return ret;
        g_usleep(50);
    }
    if (look_once(transport, x, &in, true, &ret))
        return ret;
    x->wait_ms = in.wait_ms;
    if (fake_driver_sleep(&run.f.driver, x)) {
        in.state = x->state;
        look_once(transport, x, &in, true, &ret);
    }
    return ret;
}

static int count_push(struct vgpu_transport *transport, uint64_t epoch, uint32_t queue,
                      uint32_t token, const void *response, size_t size, int connection)
{
    run.calls += !run.inside;
    return run.fake.push(transport, epoch, queue, token, response, size, connection);
}

static int read_doorbell(struct fake_driver *driver, struct vgpu_engine_event *event)
{
    uint64_t count;

    if (read(driver->base.fd, &count, sizeof(count)) < 0)
        return -EAGAIN;
    event->events = run.end ? VGPU_EVENT_REMOVED : VGPU_EVENT_KICK;
    event->queues = 1u << VGPU_QUEUE_CONTROL;
    return 0;
}

/* In place of the C library's. */
int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
    run.calls++;
    return (int)syscall(SYS_epoll_wait, fd, events, most, timeout);
}

static void ring_doorbells(void)
{
    uint64_t one = 1;

    g_assert_cmpint(write(run.f.driver.base.fd, &one, sizeof(one)), ==, sizeof(one));
}

static void send_one(void)
{
    struct virtio_gpu_ctrl_hdr cmd = {.type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO};
    bool rings;

    g_mutex_lock(&run.lock);
    fake_driver_send(&run.f.driver, VGPU_QUEUE_CONTROL, &cmd, sizeof(cmd), ANSWER_ROOM);
    rings = !run.engine_looks;
    g_mutex_unlock(&run.lock);
    if (rings) {
        run.doorbells++;
        ring_doorbells();
    }
}

static void *play_guest(void *data)
{
    for (unsigned int i = 0; i < run.requests; i++) {
        usleep(run.gap);
        send_one();
    }
    run.end = true;
    ring_doorbells();
    return data;
}

int main(int argc, char **argv)
{
    struct rusage used;
    GThread *thread;

    if (argc != 3) {
        fprintf(stderr, "usage: count-turns REQUESTS GAP_US\n");
        return 2;
    }
    run.requests = (unsigned int)atoi(argv[1]);
    run.gap = (useconds_t)atoi(argv[2]);
    fixture_set_up(&run.f, NULL);
    run.fake = run.ops = *run.f.driver.base.ops;
    run.ops.exchange = count_exchange;
    run.ops.push = count_push;
    run.f.driver.next_event = read_doorbell;
    run.f.driver.base.ops = &run.ops;
    run.f.driver.base.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    g_assert_true(loop_setup(NULL));
    thread = g_thread_new("guest", play_guest, NULL);
    g_assert_true(loop_run(&run.f.engine, NULL));
    getrusage(RUSAGE_THREAD, &used);
    g_thread_join(thread);
    printf("%u requests: %u doorbells, %u system calls, %ld times asleep\n", run.requests,
           run.doorbells, run.calls, used.ru_nvcsw);
    fixture_tear_down(&run.f, NULL);
    return 0;
}
