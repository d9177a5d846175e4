// SPDX-License-Identifier: MIT
#include "wire.h"

#include "lib/descriptor.h"

#include <errno.h>
#include <glib.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/*
 * A piece of a client's takes 768 bytes of its socket's room or a little more, and the shortest
 * piece of Mesa's has 4 bytes. So a client that has written less than the room divided by this does
 * not wait for room.
 */
#define ROOM_PER_BYTE 256u

/* Of a message that has begun, the other pieces are being written. This is less than a sleep. */
#define PIECES_US 5

bool wire_init(struct wire *wire, int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET};
    const int from = 0;
    int room = 0;
    socklen_t size = sizeof(room);

    *wire = (struct wire){.fd = fd, .events = epoll_create1(EPOLL_CLOEXEC), .idle_ms = -1};
    /* The kernel gives all sockets the same, unless a client changes its own to its own harm. */
    getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &size);
    wire->room = (size_t)room / ROOM_PER_BYTE;
    /* MSG_PEEK goes on where the last one ended. */
    return wire->events >= 0 && epoll_ctl(wire->events, EPOLL_CTL_ADD, fd, &event) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &from, sizeof(from)) == 0;
}

void wire_clear(struct wire *wire)
{
    if (wire->events >= 0)
        close(wire->events);
    wire->events = -1;
}

static bool may_go_on(struct wire *wire)
{
    return !wire->idle || wire->idle(wire->data);
}

/*
 * recvmsg() and not recv(), which would leave a client's descriptors open. @cut: they were there,
 * and the call has read nothing behind them.
 */
static ssize_t receive_bytes(int fd, void *data, size_t size, int flags, bool *cut)
{
    struct iovec iov = {.iov_base = data, .iov_len = size};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t ret;

    do {
        ret = recvmsg(fd, &message, flags);
    } while (ret < 0 && errno == EINTR);
    *cut = message.msg_flags & MSG_CTRUNC;
    return ret;
}

static bool take_out(struct wire *wire)
{
    uint8_t scratch[WIRE_BUFFER];

    while (wire->left > 0) {
        size_t size = wire->left < sizeof(scratch) ? wire->left : sizeof(scratch);
        bool cut;
        ssize_t ret = receive_bytes(wire->fd, scratch, size, MSG_DONTWAIT, &cut);

        if (ret <= 0)
            return false;
        wire->left -= (size_t)ret;
    }
    return true;
}

static void wait_for_pieces(void)
{
    gint64 until = g_get_monotonic_time() + PIECES_US;

    while (g_get_monotonic_time() < until)
        ;
}

static int wait_for_event(struct wire *wire, struct epoll_event *event)
{
    const struct timespec soon = {.tv_nsec = (long)wire->soon_us * 1000};

    if (wire->soon_us)
        return epoll_pwait2(wire->events, event, 1, &soon, NULL);
    return epoll_wait(wire->events, event, 1, wire->idle_ms);
}

/*
 * Something has come, or the peer has gone. False: the peer has gone, or idle() ends it. A
 * recvmsg() that blocks would also wake up when the client reads its answer.
 */
static bool wait_for_more(struct wire *wire)
{
    /*
     * A client's write that waits for room goes on only when the socket is three quarters empty,
     * and a piece takes its room until its last byte is out. So nothing is left in the socket if
     * more has come than it surely holds.
     */
    if (wire->burst >= wire->room) {
        if (!take_out(wire))
            return false;
        wire->burst = 0;
    }
    for (;;) {
        struct epoll_event event;
        int ret = wait_for_event(wire, &event);

        if (ret > 0) {
            wire->ended |= (event.events & ~(uint32_t)EPOLLIN) != 0;
            /* The client may share this processor, and is usually in the middle of its writes. */
            sched_yield();
            return true;
        }
        if (ret < 0 && errno == EINTR)
            continue;
        if (wire->soon_us) {
            wire->soon_us = 0;
            if (!wire->soon(wire->data))
                return false;
            continue;
        }
        /* A client whose pieces are shorter than expected may wait for room. */
        if (!may_go_on(wire) || !take_out(wire))
            return false;
    }
}

/*
 * More into the empty buffer. 0: the peer has disconnected; -1: idle() ends it. A client that has
 * not begun a message is usually yet to write it, so an event is waited for before the look. But
 * one event can stand for more than one look reads. What is left then has none of its own.
 */
static int wire_fill(struct wire *wire, bool is_expected)
{
    if (wire->left >= sizeof(wire->buffer) && !take_out(wire))
        return 0;
    if (!is_expected && !wire->more && !wire->ended && !wait_for_more(wire))
        return -1;
    do {
        bool cut;
        ssize_t ret = receive_bytes(wire->fd, wire->buffer, sizeof(wire->buffer),
                                    MSG_PEEK | MSG_DONTWAIT, &cut);

        if (ret > 0) {
            wire->more = cut || (size_t)ret == sizeof(wire->buffer);
            wire->begin = 0;
            wire->end = (size_t)ret;
            wire->left += (size_t)ret;
            wire->burst += (size_t)ret;
            return 1;
        }
        if (ret == 0 || errno != EAGAIN)
            return 0;
    } while (wait_for_more(wire));
    return -1;
}

static size_t wire_take(struct wire *wire, uint8_t *bytes, size_t size)
{
    size_t there = wire->end - wire->begin;
    size_t part = there < size ? there : size;

    memcpy(bytes, wire->buffer + wire->begin, part);
    wire->begin += part;
    return part;
}

enum wire_result wire_read(struct wire *wire, void *data, size_t size)
{
    size_t done = wire_take(wire, data, size);

    while (done < size) {
        int ret;

        if (done > 0 && wire->end < sizeof(wire->buffer))
            wait_for_pieces();
        ret = wire_fill(wire, done > 0);
        if (ret < 0)
            return WIRE_IDLE;
        if (ret == 0)
            return done > 0 ? WIRE_CUT : WIRE_END;
        done += wire_take(wire, (uint8_t *)data + done, size - done);
        /* A client that sends slowly. */
        if (done < size && !may_go_on(wire))
            return WIRE_IDLE;
    }
    return WIRE_OK;
}

bool wire_write(struct wire *wire, const void *data, size_t size)
{
    const uint8_t *bytes = data;

    while (size > 0) {
        ssize_t ret = send(wire->fd, bytes, size, MSG_NOSIGNAL);

        if (ret < 0 && errno == EINTR)
            continue;
        if (ret < 0)
            return false;
        bytes += ret;
        size -= (size_t)ret;
    }
    return true;
}

/* Two messages, because a client reads the first without a place for descriptors. */
bool wire_write_fd(struct wire *wire, const void *data, size_t size, int fd)
{
    uint8_t byte = 0;
    struct iovec iov[] = {
        {.iov_base = (void *)data, .iov_len = size},
        {.iov_base = &byte, .iov_len = 1},
    };
    struct mmsghdr messages[] = {
        {.msg_hdr = {.msg_iov = &iov[0], .msg_iovlen = 1}},
        {.msg_hdr = {.msg_iov = &iov[1], .msg_iovlen = 1}},
    };
    union descriptor_room room;
    int sent = 0;

    descriptor_attach(&messages[1].msg_hdr, &room, &fd, 1);
    while (sent < 2) {
        int ret = sendmmsg(wire->fd, messages + sent, (unsigned int)(2 - sent), MSG_NOSIGNAL);

        if (ret < 0 && errno == EINTR)
            continue;
        if (ret < 0)
            return false;
        sent += ret;
    }
    return messages[0].msg_len == size;
}
