// SPDX-License-Identifier: MIT
#include "spare.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* The client's, and the keeper's if there is one. */
#define MOST_FDS 2

union control {
    char bytes[CMSG_SPACE(MOST_FDS * sizeof(int))];
    struct cmsghdr align;
};

bool spare_send(int link, const struct spare_client *client)
{
    const int fds[MOST_FDS] = {client->fd, client->keeper};
    size_t size = (client->keeper >= 0 ? 2 : 1) * sizeof(int);
    struct iovec data = {.iov_base = (void *)client, .iov_len = sizeof(*client)};
    union control control = {0};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_SPACE(size)};

    control.align = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(size)};
    memcpy(CMSG_DATA(&control.align), fds, size);
    return sendmsg(link, &message, MSG_NOSIGNAL) == sizeof(*client);
}

bool spare_receive(int link, struct spare_client *client)
{
    struct iovec data = {.iov_base = client, .iov_len = sizeof(*client)};
    union control control = {0};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control.bytes)};
    int fds[MOST_FDS] = {-1, -1};
    ssize_t length;

    do {
        length = recvmsg(link, &message, MSG_CMSG_CLOEXEC);
    } while (length < 0 && errno == EINTR);
    if (length != sizeof(*client) || !CMSG_FIRSTHDR(&message))
        return false;
    memcpy(fds, CMSG_DATA(&control.align), control.align.cmsg_len - CMSG_LEN(0));
    client->fd = fds[0];
    client->keeper = fds[1];
    return true;
}
