// SPDX-License-Identifier: MIT
/*
 * The cost of requests for the engine's loop, in counts: count-turns REQUESTS GAP_US. A guest sends
 * a request every GAP_US microseconds, and rings only if the engine is not polling, like the
 * driver. Not a test: for docs/performance.md, with strace -c.
 */
#include "fixture.h"

#include "loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

static struct {
    struct fixture f;
    struct vgpu_transport_ops ops;
    GMutex lock;
    unsigned int requests;
    useconds_t gap;
    unsigned int looks; /* pop: a system call each */
    unsigned int doorbells;
    bool engine_looks;
    bool end;
} run;

static int (*fake_pop)(struct vgpu_transport *transport, struct vgpu_queue_pop *pop);

static int count_pop(struct vgpu_transport *transport, struct vgpu_queue_pop *pop)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&run.lock);
    int ret = fake_pop(transport, pop);

    run.looks++;
    if (pop->queue == VGPU_QUEUE_CONTROL)
        run.engine_looks = pop->flags & VGPU_POP_POLL;
    return ret;
}

static int read_doorbell(struct vgpu_transport *transport, struct vgpu_engine_event *event)
{
    uint64_t count;

    if (read(transport->fd, &count, sizeof(count)) < 0)
        return -EAGAIN;
    event->events = run.end ? VGPU_EVENT_REMOVED : VGPU_EVENT_KICK;
    event->queues = 1u << VGPU_QUEUE_CONTROL;
    return 0;
}

static void ring(void)
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
        ring();
    }
}

static void *guest(void *data)
{
    for (unsigned int i = 0; i < run.requests; i++) {
        usleep(run.gap);
        send_one();
    }
    run.end = true;
    ring();
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
    run.ops = *run.f.driver.base.ops;
    fake_pop = run.ops.pop;
    run.ops.pop = count_pop;
    run.ops.read_event = read_doorbell;
    run.f.driver.base.ops = &run.ops;
    run.f.driver.base.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    g_assert_true(loop_setup(NULL));
    thread = g_thread_new("guest", guest, NULL);
    g_assert_true(loop_run(&run.f.engine, NULL));
    getrusage(RUSAGE_THREAD, &used);
    g_thread_join(thread);
    printf("%u requests: %u doorbells, %u looks, %ld times asleep\n", run.requests, run.doorbells,
           run.looks, used.ru_nvcsw);
    fixture_tear_down(&run.f, NULL);
    return 0;
}
