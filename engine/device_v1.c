// SPDX-License-Identifier: MIT
#include "device_v1.h"

#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <stdbool.h>

#define POP_TRUNCATE (1u << 0)

struct queue_pop {
    uint32_t argsz;
    uint32_t flags;
    uint64_t epoch;
    uint32_t queue;
    uint32_t token;
    uint64_t buf;
    uint64_t buf_size;
    uint64_t request_size;
    uint64_t response_size;
};

struct queue_push {
    uint32_t argsz;
    uint32_t flags;
    uint64_t epoch;
    uint32_t queue;
    uint32_t token;
    uint64_t buf;
    uint64_t size;
};

#define QUEUE_POP  _IOWR(VGPU_IOC_MAGIC, 0x14, struct queue_pop)
#define QUEUE_PUSH _IOW(VGPU_IOC_MAGIC, 0x15, struct queue_push)

static void push_answers(const struct device_v1 *device, const struct vgpu_queue_exchange *exchange)
{
    struct vgpu_queue_answer *answers = (struct vgpu_queue_answer *)(uintptr_t)exchange->answers;

    for (uint32_t i = 0; i < exchange->nanswers; i++) {
        struct queue_push push = {
            .argsz = sizeof(push),
            .epoch = exchange->epoch,
            .queue = answers[i].queue,
            .token = answers[i].token,
            .buf = answers[i].buf,
            .size = answers[i].size,
        };

        answers[i].result = device->control(device->fd, QUEUE_PUSH, &push);
    }
}

static int read_event(const struct device_v1 *device, struct vgpu_engine_event *event)
{
    ssize_t n = device->read(device->fd, event, sizeof(*event));

    if (n == -EAGAIN) {
        *event = (struct vgpu_engine_event){0};
        return 0;
    }
    if (n < 0)
        return (int)n;
    return n == (ssize_t)sizeof(*event) ? 0 : -EIO;
}

/* A request more. 0, or why there is none: -EAGAIN, the queue is empty; -EMSGSIZE; -ESTALE;
 * -EPROTO; others. */
static int pop_request(const struct device_v1 *device, struct vgpu_queue_exchange *exchange,
                       uint32_t queue, uint32_t count, uint64_t *used)
{
    struct vgpu_queue_request *request =
        (struct vgpu_queue_request *)(uintptr_t)exchange->requests + count;
    struct queue_pop pop = {
        .argsz = sizeof(pop),
        .flags = exchange->flags & VGPU_EXCHANGE_TRUNCATE && *used == 0 ? POP_TRUNCATE : 0,
        .epoch = exchange->epoch,
        .queue = queue,
        .buf = exchange->buf + *used,
        .buf_size = exchange->buf_size - *used,
    };
    int ret = device->control(device->fd, QUEUE_POP, &pop);

    if (ret == -EMSGSIZE)
        exchange->wanted = pop.request_size;
    if (ret < 0)
        return ret;
    *request = (struct vgpu_queue_request){
        .queue = queue,
        .token = pop.token,
        .offset = *used,
        .request_size = pop.request_size,
        .response_size = pop.response_size,
    };
    /* The next one begins at a multiple of 8, like the first. */
    *used = MIN(*used + ((pop.request_size + 7) & ~7ull), exchange->buf_size);
    return 0;
}

/* Takes requests of all wanted queues. What was taken counts, even if there is an error after it.
 */
static int pop_requests(const struct device_v1 *device, struct vgpu_queue_exchange *exchange)
{
    uint32_t room = exchange->nrequests, count = 0;
    uint64_t used = 0;
    int ret = 0;

    for (uint32_t queue = 0; queue < VGPU_NUM_QUEUES; queue++) {
        ret = 0;
        while (exchange->queues & (1u << queue) && count < room && ret == 0) {
            ret = pop_request(device, exchange, queue, count, &used);
            count += ret == 0;
        }
        if (ret == -EAGAIN || ret == -EPROTO || ret == -ESTALE)
            exchange->queues &= ~(1u << queue);
        if (ret == -EPROTO)
            exchange->state |= VGPU_EXCHANGE_BROKEN;
        else if (ret == -ESTALE)
            exchange->state |= VGPU_EXCHANGE_STALE;
        else if (ret < 0 && ret != -EAGAIN && ret != -EMSGSIZE)
            break;
        ret = 0;
    }
    exchange->nrequests = count;
    return count ? 0 : ret;
}

static void sleep_until_more(const struct device_v1 *device, struct vgpu_queue_exchange *exchange)
{
    struct pollfd fds[] = {
        {.fd = device->fd, .events = POLLIN},
        {.fd = exchange->wait_fd, .events = POLLIN},
    };

    /* VGPU_EXCHANGE_FOREVER is -1. */
    if (poll(fds, G_N_ELEMENTS(fds), (int)exchange->wait_ms) > 0 && fds[1].revents)
        exchange->state |= VGPU_EXCHANGE_WOKEN;
}

static bool has_hung_up(int connection)
{
    struct pollfd end = {.fd = connection};

    return poll(&end, 1, 0) > 0 && (end.revents & (POLLHUP | POLLERR));
}

int device_v1_exchange(const struct device_v1 *device, struct vgpu_queue_exchange *exchange)
{
    int ret = 0;

    if (exchange->flags & VGPU_EXCHANGE_CONNECTED && has_hung_up(exchange->wait_fd))
        return -EPIPE;
    exchange->state = 0;
    exchange->wanted = 0;
    exchange->event = (struct vgpu_engine_event){0};
    push_answers(device, exchange);
    if (exchange->flags & VGPU_EXCHANGE_EVENTS)
        ret = read_event(device, &exchange->event);
    if (exchange->event.events & VGPU_EVENT_KICK)
        exchange->queues |= exchange->event.queues;
    if (ret == 0)
        ret = pop_requests(device, exchange);
    if (ret == 0 && exchange->wait_ms && !exchange->nrequests && !exchange->wanted &&
        !exchange->event.events && !(exchange->state & VGPU_EXCHANGE_BROKEN))
        sleep_until_more(device, exchange);
    return ret;
}
