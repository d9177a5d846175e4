// SPDX-License-Identifier: MIT
#include "lingering.h"

#include <arpa/inet.h>
#include <errno.h>
#include <glib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* It accepts nothing and reads nothing, for as long as the test runs. */
static int make_peer(struct sockaddr_in *address)
{
    const int room = 4096;
    socklen_t length = sizeof(*address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *address = (struct sockaddr_in){0};
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    g_assert_cmpint(bind(fd, (struct sockaddr *)address, length), ==, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    g_assert_cmpint(listen(fd, 1), ==, 0);
    g_assert_cmpint(getsockname(fd, (struct sockaddr *)address, &length), ==, 0);
    return fd;
}

static int make_lingering(const struct sockaddr_in *address)
{
    static const char bytes[65536];
    const struct linger linger = {.l_onoff = 1, .l_linger = LINGERING_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(connect(fd, (const struct sockaddr *)address, sizeof(*address)), ==, 0);
    while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
    g_assert_cmpint(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), ==, 0);
    return fd;
}

static bool send_with(int connection, const void *data, size_t size, int fd)
{
    struct iovec iov = {.iov_base = (void *)data, .iov_len = size};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {.align = {.cmsg_level = SOL_SOCKET,
                           .cmsg_type = SCM_RIGHTS,
                           .cmsg_len = CMSG_LEN(sizeof(int))}};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control.bytes)};

    memcpy(CMSG_DATA(&control.align), &fd, sizeof(int));
    return sendmsg(connection, &message, MSG_NOSIGNAL) == (ssize_t)size;
}

bool lingering_send(int connection, const void *data, size_t size)
{
    struct sockaddr_in address;
    int status = 0;
    pid_t pid;

    /* Stays open. */
    make_peer(&address);
    pid = fork();
    g_assert_cmpint(pid, >=, 0);
    /* A process that exits does not wait for it. */
    if (!pid)
        _exit(send_with(connection, data, size, make_lingering(&address)) ? 0 : errno);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_true(WIFEXITED(status));
    errno = WEXITSTATUS(status);
    return !errno;
}
