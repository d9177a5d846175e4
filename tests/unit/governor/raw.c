// SPDX-License-Identifier: MIT
#include "raw.h"

#include <glib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int raw_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    g_strlcpy(address.sun_path, path, sizeof(address.sun_path));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

bool raw_send(int fd, uint32_t type, uint64_t value, uint64_t other, int flags)
{
    struct governor_message message = {
        .version = GOVERNOR_PROTOCOL_VERSION, .type = type, .value = value, .other = other};

    return send(fd, &message, sizeof(message), MSG_NOSIGNAL | flags) == sizeof(message);
}

bool raw_welcome(int fd, int fds[2])
{
    struct governor_message message;
    struct iovec data = {.iov_base = &message, .iov_len = sizeof(message)};
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr packet = {.msg_iov = &data,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control)};

    if (recvmsg(fd, &packet, MSG_CMSG_CLOEXEC) != sizeof(message) ||
        message.type != GOVERNOR_WELCOME)
        return false;
    memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&packet)), 2 * sizeof(int));
    return true;
}

bool raw_join(int fd, int fds[2])
{
    return raw_send(fd, GOVERNOR_JOIN, 0, 0, 0) && raw_welcome(fd, fds);
}

int raw_member(const char *path)
{
    int fds[2], fd = raw_connect(path);

    if (fd < 0)
        return -1;
    if (!raw_join(fd, fds)) {
        close(fd);
        return -1;
    }
    close(fds[0]);
    close(fds[1]);
    return fd;
}
