/* SPDX-License-Identifier: MIT */
/*
 * Messages with descriptors (SCM_RIGHTS), of the sockets of CUDA's workers, a guard's own
 * processes, the arbiter and the vault. It needs the C library only.
 */
#ifndef LIB_DESCRIPTOR_H
#define LIB_DESCRIPTOR_H

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DESCRIPTORS_MOST 2u /* in one message */

union descriptor_room {
    char bytes[CMSG_SPACE(DESCRIPTORS_MOST * sizeof(int))];
    struct cmsghdr align;
};

/* Those of @fds up to the first that is none (-1) go with the message; the caller keeps them. */
static inline void descriptor_attach(struct msghdr *message, union descriptor_room *room,
                                     const int *fds, size_t count)
{
    size_t used = 0;

    while (used < count && fds[used] >= 0)
        used++;
    if (!used)
        return;
    memset(room, 0, sizeof(*room));
    message->msg_control = room;
    message->msg_controllen = CMSG_SPACE(used * sizeof(*fds));
    room->align.cmsg_level = SOL_SOCKET;
    room->align.cmsg_type = SCM_RIGHTS;
    room->align.cmsg_len = CMSG_LEN(used * sizeof(*fds));
    memcpy(CMSG_DATA(&room->align), fds, used * sizeof(*fds));
}

/* As sendmsg(), with descriptor_attach(). */
static inline ssize_t descriptor_send(int socket, const void *data, size_t bytes, int flags,
                                      const int *fds, size_t count)
{
    struct iovec part = {.iov_base = (void *)data, .iov_len = bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union descriptor_room room;

    descriptor_attach(&message, &room, fds, count);
    return sendmsg(socket, &message, flags | MSG_NOSIGNAL);
}

/* @fds: what came, and -1 for the rest. */
static inline void descriptor_take(struct msghdr *message, int *fds, size_t count)
{
    const struct cmsghdr *header = CMSG_FIRSTHDR(message);
    size_t bytes;

    for (size_t i = 0; i < count; i++)
        fds[i] = -1;
    if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
        return;
    bytes = header->cmsg_len - CMSG_LEN(0);
    memcpy(fds, CMSG_DATA(header), bytes < count * sizeof(*fds) ? bytes : count * sizeof(*fds));
}

/*
 * As recvmsg(); a message that is longer than @bytes fails with EMSGSIZE. The caller owns what is
 * in @fds. There is room for so many exactly (CMSG_SPACE() has more), so the kernel itself closes
 * what else the other end has sent. If that has ended and not read all, the kernel says so once
 * (ECONNRESET) before it hands over what it has sent.
 */
static inline ssize_t descriptor_receive(int socket, void *data, size_t bytes, int flags, int *fds,
                                         size_t count)
{
    union descriptor_room room;
    struct iovec part = {.iov_base = data, .iov_len = bytes};
    struct msghdr message;
    ssize_t got;

    do {
        message = (struct msghdr){.msg_iov = &part,
                                  .msg_iovlen = 1,
                                  .msg_control = &room,
                                  .msg_controllen = CMSG_LEN(count * sizeof(*fds))};
        got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got < 0)
        message.msg_controllen = 0;
    descriptor_take(&message, fds, count);
    if (got < 0 || !(message.msg_flags & MSG_TRUNC))
        return got;
    for (size_t i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    for (size_t i = 0; i < count; i++)
        fds[i] = -1;
    errno = EMSGSIZE;
    return -1;
}

#endif
