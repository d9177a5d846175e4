// SPDX-License-Identifier: MIT
#include "keeper_wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

bool keeper_send(int connection, const struct keeper_packet *packet, int fd)
{
    struct iovec data = {.iov_base = (void *)packet, .iov_len = sizeof(*packet)};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    union control control = {0};

    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(sizeof(int));
        control.align = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(&control.align), &fd, sizeof(int));
    }
    return sendmsg(connection, &message, MSG_NOSIGNAL) == sizeof(*packet);
}

static int descriptor_of(struct msghdr *message)
{
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    int fd = -1;

    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(header), sizeof(int));
    return fd;
}

/* CMSG_SPACE() has room for two descriptors, of which only one would be closed. */
enum keeper_received keeper_receive(int connection, struct keeper_packet *packet, int *fd)
{
    struct iovec data = {.iov_base = packet, .iov_len = sizeof(*packet)};
    union control control = {0};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_LEN(sizeof(int))};
    ssize_t length = recvmsg(connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    *fd = -1;
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return KEEPER_NOTHING;
    if (length > 0)
        *fd = descriptor_of(&message);
    if (length == sizeof(*packet) && !(message.msg_flags & MSG_TRUNC))
        return KEEPER_PACKET;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return KEEPER_END;
}
