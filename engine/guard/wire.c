// SPDX-License-Identifier: MIT
#include "wire.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

static bool may_go_on(struct wire *wire)
{
    return !wire->idle || wire->idle(wire->data);
}

/* Bytes, at least one; 0: the peer has disconnected; -1: idle() ends it. */
static ssize_t receive(struct wire *wire, struct iovec *iov, size_t count, int flags)
{
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};

    for (;;) {
        ssize_t ret = recvmsg(wire->fd, &message, flags);

        if (ret >= 0)
            return ret;
        if (errno == EAGAIN && may_go_on(wire))
            continue;
        if (errno == EAGAIN)
            return -1;
        if (errno != EINTR)
            return 0;
    }
}

static enum wire_result gone(ssize_t ret, bool begun)
{
    if (ret < 0)
        return WIRE_IDLE;
    return begun ? WIRE_CUT : WIRE_END;
}

enum wire_result wire_read(struct wire *wire, void *data, size_t size)
{
    uint8_t *bytes = data;
    uint8_t old;
    size_t done = 0;
    ssize_t ret;
    struct iovec last = {.iov_base = bytes + size - 1, .iov_len = 1};

    while (wire->held || done < size - 1) {
        struct iovec iov[] = {
            {.iov_base = &old, .iov_len = wire->held},
            {.iov_base = bytes + done, .iov_len = size - 1 - done},
        };

        ret = receive(wire, iov, 2, MSG_WAITALL);
        if (ret <= 0)
            return gone(ret, done > 0);
        done += (size_t)ret - wire->held;
        wire->held = false;
        /* MSG_WAITALL, and yet there is more to come: a client that sends slowly. */
        if (done < size - 1 && !may_go_on(wire))
            return WIRE_IDLE;
    }
    ret = receive(wire, &last, 1, MSG_PEEK);
    if (ret <= 0)
        return gone(ret, done > 0);
    wire->held = true;
    return WIRE_OK;
}

static ssize_t send_some(struct wire *wire, const struct msghdr *message)
{
    ssize_t ret;

    do {
        ret = sendmsg(wire->fd, message, MSG_NOSIGNAL);
    } while (ret < 0 && errno == EINTR);
    return ret;
}

bool wire_write(struct wire *wire, const void *data, size_t size)
{
    const uint8_t *bytes = data;

    while (size > 0) {
        struct iovec iov = {.iov_base = (void *)bytes, .iov_len = size};
        struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
        ssize_t ret = send_some(wire, &message);

        if (ret < 0)
            return false;
        bytes += ret;
        size -= (size_t)ret;
    }
    return true;
}

bool wire_write_fd(struct wire *wire, int fd)
{
    uint8_t byte = 0;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct msghdr message = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control),
    };
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
    return send_some(wire, &message) == 1;
}
