// SPDX-License-Identifier: MIT
/* Version 1 of the driver's interface, against a driver that was never told of version 2. */
#include "device_v1.h"

#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <sys/eventfd.h>

/* As that version's header had them. */
struct pop {
    uint32_t argsz, flags;
    uint64_t epoch;
    uint32_t queue, token;
    uint64_t buf, buf_size, request_size, response_size;
};

struct push {
    uint32_t argsz, flags;
    uint64_t epoch;
    uint32_t queue, token;
    uint64_t buf, size;
};

#define V1_POP  _IOWR(0xb7, 0x14, struct pop)
#define V1_PUSH _IOW(0xb7, 0x15, struct push)

#define EPOCH 7

/* @sizes: of the requests in each queue; 0 ends them. @broken: the guest broke the cursor queue. */
static struct {
    uint64_t sizes[VGPU_NUM_QUEUES][8];
    unsigned int popped[VGPU_NUM_QUEUES], pops;
    struct vgpu_engine_event event;
    uint32_t pushed[4];
    unsigned int npushed;
    bool broken;
} driver;

static int pop_one(struct pop *pop)
{
    uint64_t size = driver.sizes[pop->queue][driver.popped[pop->queue]];

    driver.pops++;
    g_assert_cmpuint(pop->argsz, ==, sizeof(*pop));
    g_assert_cmpuint(pop->flags & ~1u, ==, 0);
    if (pop->epoch != EPOCH)
        return -ESTALE;
    if (pop->queue == VGPU_QUEUE_CURSOR && driver.broken)
        return -EPROTO;
    if (!size)
        return -EAGAIN;
    pop->request_size = size;
    if (size > pop->buf_size && !(pop->flags & 1))
        return -EMSGSIZE;
    memset((void *)(uintptr_t)pop->buf, 'a' + (int)driver.popped[pop->queue],
           MIN(size, pop->buf_size));
    pop->response_size = 24;
    pop->token = 100 * (pop->queue + 1) + driver.popped[pop->queue]++;
    return 0;
}

static int answer_ioctl(int fd, unsigned long request, void *arg)
{
    const struct push *push = arg;

    g_assert_cmpint(fd, ==, 5);
    if (request == V1_POP)
        return pop_one(arg);
    g_assert_cmpuint(request, ==, V1_PUSH);
    g_assert_cmpuint(push->argsz, ==, sizeof(*push));
    g_assert_cmpuint(push->flags, ==, 0);
    driver.pushed[driver.npushed++] = push->token;
    return push->epoch == EPOCH ? 0 : -ESTALE;
}

static ssize_t read_event(int fd, void *buf, size_t size)
{
    g_assert_cmpint(fd, ==, 5);
    g_assert_cmpuint(size, ==, sizeof(driver.event));
    if (!driver.event.events)
        return -EAGAIN;
    memcpy(buf, &driver.event, size);
    driver.event = (struct vgpu_engine_event){0};
    return (ssize_t)size;
}

static const struct device_v1 device = {5, answer_ioctl, read_event};
static struct vgpu_queue_request taken[VGPU_EXCHANGE_MAX];
static _Alignas(8) char buf[64];

static struct vgpu_queue_exchange exchange_of(uint32_t queues)
{
    return (struct vgpu_queue_exchange){
        .flags = VGPU_EXCHANGE_EVENTS,
        .epoch = EPOCH,
        .requests = (uintptr_t)taken,
        .nrequests = G_N_ELEMENTS(taken),
        .buf = (uintptr_t)buf,
        .buf_size = sizeof(buf),
        .queues = queues,
    };
}

static void begin_device(void)
{
    memset(&driver, 0, sizeof(driver));
    memset(taken, 0xff, sizeof(taken));
}

/* Answers go first, then comes what was kicked; an empty queue is armed by a pop in vain. */
static void test_turn(void)
{
    struct vgpu_queue_answer answer = {.queue = 0, .token = 42, .result = -1};
    struct vgpu_queue_exchange x = exchange_of(0);

    begin_device();
    driver.sizes[0][0] = 5;
    driver.sizes[0][1] = 8;
    driver.event =
        (struct vgpu_engine_event){.events = VGPU_EVENT_KICK, .queues = 1, .epoch = EPOCH};
    x.answers = (uintptr_t)&answer;
    x.nanswers = 1;
    g_assert_cmpint(device_v1_exchange(&device, &x), ==, 0);
    g_assert_cmpint(answer.result, ==, 0);
    g_assert_cmpuint(driver.pushed[0], ==, 42);
    g_assert_cmpuint(x.event.events, ==, VGPU_EVENT_KICK);
    g_assert_cmpuint(x.nrequests, ==, 2);
    g_assert_cmpuint(x.queues, ==, 0);
    g_assert_cmpuint(driver.pops, ==, 3);
    g_assert_cmpuint(taken[1].token, ==, 101);
    g_assert_cmpuint(taken[1].offset, ==, 8);
    g_assert_cmpint(buf[4], ==, 'a');
    g_assert_cmpint(buf[taken[1].offset + 7], ==, 'b');

    x = exchange_of(0);
    g_assert_cmpint(device_v1_exchange(&device, &x), ==, 0);
    g_assert_cmpuint(driver.pops, ==, 3);
    g_assert_cmpuint(x.nrequests + x.event.events, ==, 0);
}

/* An answer that is true only while a connection is there. */
static void test_connected(void)
{
    struct vgpu_queue_answer answer = {.queue = 0, .token = 42};
    struct vgpu_queue_exchange x = {
        .flags = VGPU_EXCHANGE_CONNECTED,
        .epoch = EPOCH,
        .answers = (uintptr_t)&answer,
        .nanswers = 1,
    };
    int ends[2];

    begin_device();
    g_assert_no_errno(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends));
    x.wait_fd = ends[0];
    close(ends[1]);
    g_assert_cmpint(device_v1_exchange(&device, &x), ==, -EPIPE);
    g_assert_cmpuint(driver.pushed[0], ==, 0);
    close(ends[0]);
    g_assert_no_errno(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends));
    x.wait_fd = ends[0];
    g_assert_cmpint(device_v1_exchange(&device, &x), ==, 0);
    g_assert_cmpuint(driver.pushed[0], ==, 42);
    close(ends[0]);
    close(ends[1]);
}

/* What does not fit stays, with its size; the last resort is to cut it. */
static void test_room(void)
{
    struct vgpu_queue_exchange x = exchange_of(1);

    begin_device();
    driver.sizes[0][0] = 40;
    driver.sizes[0][1] = 100;
    g_assert_cmpint(device_v1_exchange(&device, &x), ==, 0);
    g_assert_cmpuint(x.nrequests, ==, 1);
    g_assert_cmpuint(x.queues, ==, 1);
    g_assert_cmpuint(x.wanted, ==, 100);

    x = exchange_of(1);
    x.flags |= VGPU_EXCHANGE_TRUNCATE;
    g_assert_cmpint(device_v1_exchange(&device, &x), ==, 0);
    g_assert_cmpuint(x.nrequests, ==, 1);
    g_assert_cmpuint(taken[0].request_size, ==, 100);
    g_assert_cmpuint(x.queues, ==, 0);

    begin_device();
    for (unsigned int i = 0; i < 4; i++)
        driver.sizes[0][i] = 8;
    x = exchange_of(1);
    x.nrequests = 3;
    g_assert_cmpint(device_v1_exchange(&device, &x), ==, 0);
    g_assert_cmpuint(x.nrequests, ==, 3);
    g_assert_cmpuint(x.queues, ==, 1);
}

/* One queue's state does not cost the other's requests. */
static void test_states(void)
{
    struct vgpu_queue_exchange x = exchange_of(3);

    begin_device();
    driver.sizes[0][0] = 8;
    driver.broken = true;
    g_assert_cmpint(device_v1_exchange(&device, &x), ==, 0);
    g_assert_cmpuint(x.nrequests, ==, 1);
    g_assert_cmpuint(x.state, ==, VGPU_EXCHANGE_BROKEN);
    g_assert_cmpuint(x.queues, ==, 0);

    x = exchange_of(1);
    x.epoch = EPOCH - 1;
    g_assert_cmpint(device_v1_exchange(&device, &x), ==, 0);
    g_assert_cmpuint(x.nrequests, ==, 0);
    g_assert_cmpuint(x.state, ==, VGPU_EXCHANGE_STALE);
}

/* Sleeps only if there is nothing, until one of two files is readable. The next call has the event.
 */
static void test_wait(void)
{
    struct vgpu_queue_exchange x = exchange_of(1);
    int other = eventfd(1, EFD_CLOEXEC), own = eventfd(0, EFD_CLOEXEC);

    begin_device();
    driver.sizes[0][0] = 8;
    g_assert_cmpint(dup2(own, device.fd), ==, device.fd);
    x.wait_ms = VGPU_EXCHANGE_FOREVER;
    x.wait_fd = -1;
    g_assert_cmpint(device_v1_exchange(&device, &x), ==, 0);
    g_assert_cmpuint(x.nrequests, ==, 1);

    x = exchange_of(0);
    x.wait_ms = VGPU_EXCHANGE_FOREVER;
    x.wait_fd = other;
    g_assert_cmpint(device_v1_exchange(&device, &x), ==, 0);
    g_assert_cmpuint(x.state, ==, VGPU_EXCHANGE_WOKEN);

    g_assert_cmpint(eventfd_write(device.fd, 1), ==, 0);
    x.wait_fd = -1;
    g_assert_cmpint(device_v1_exchange(&device, &x), ==, 0);
    g_assert_cmpuint(x.state | x.event.events, ==, 0);
    close(other);
    close(device.fd);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/device-v1/turn", test_turn);
    g_test_add_func("/device-v1/connected", test_connected);
    g_test_add_func("/device-v1/room", test_room);
    g_test_add_func("/device-v1/states", test_states);
    g_test_add_func("/device-v1/wait", test_wait);
    return g_test_run();
}
