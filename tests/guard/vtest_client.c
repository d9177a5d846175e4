// SPDX-License-Identifier: MIT
#include "vtest_client.h"

#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define DROP_MS 20000

int client_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpuint(strlen(path), <, sizeof(address.sun_path));
    strcpy(address.sun_path, path);
    g_assert_no_errno(connect(fd, (const struct sockaddr *)&address, sizeof(address)));
    return fd;
}

bool client_write(int fd, const void *data, size_t size)
{
    const char *bytes = data;

    while (size > 0) {
        ssize_t ret = send(fd, bytes, size, MSG_NOSIGNAL);

        if (ret < 0)
            return false;
        bytes += ret;
        size -= (size_t)ret;
    }
    return true;
}

bool client_write_fd(int fd, int sent)
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
    rights->cmsg_len = CMSG_LEN(sizeof(sent));
    memcpy(CMSG_DATA(rights), &sent, sizeof(sent));
    return sendmsg(fd, &message, MSG_NOSIGNAL) == 1;
}

bool client_message(int fd, uint32_t command, const uint32_t *data, size_t words)
{
    const uint32_t header[] = {(uint32_t)words, command};

    return client_write(fd, header, sizeof(header)) &&
           client_write(fd, data, words * sizeof(*data));
}

void client_name(int fd)
{
    static const char name[] = "test";
    const uint32_t header[] = {sizeof(name), VTEST_CREATE_RENDERER};

    g_assert_true(client_write(fd, header, sizeof(header)));
    g_assert_true(client_write(fd, name, sizeof(name)));
}

void client_hello(int fd)
{
    const uint32_t venus = 4;

    client_name(fd);
    g_assert_true(client_message(fd, VTEST_CONTEXT_INIT, &venus, 1));
}

static void read_all(int fd, void *data, size_t size)
{
    if (size)
        g_assert_cmpint(recv(fd, data, size, MSG_WAITALL), ==, size);
}

void client_answer(int fd, uint32_t command, uint32_t *data, uint32_t words)
{
    uint32_t header[VTEST_HEADER_WORDS];

    read_all(fd, header, sizeof(header));
    g_assert_cmpuint(header[1], ==, command);
    g_assert_cmpuint(header[0], ==, words);
    read_all(fd, data, words * sizeof(*data));
}

int client_answer_fd(int fd)
{
    char byte;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr message = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control),
    };
    int received;

    g_assert_cmpint(recvmsg(fd, &message, MSG_CMSG_CLOEXEC), ==, 1);
    g_assert_nonnull(CMSG_FIRSTHDR(&message));
    memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(received));
    return received;
}

uint32_t client_blob(int fd, uint64_t blob_id, uint64_t size, int *blob_fd)
{
    const uint32_t host3d = 2;
    const uint32_t mappable = 1;
    uint32_t id;

    g_assert_true(client_send(fd, VTEST_RESOURCE_CREATE_BLOB, host3d, mappable, (uint32_t)size,
                              (uint32_t)(size >> 32), (uint32_t)blob_id,
                              (uint32_t)(blob_id >> 32)));
    client_answer(fd, VTEST_RESOURCE_CREATE_BLOB, &id, 1);
    *blob_fd = client_answer_fd(fd);
    return id;
}

bool client_is_dropped(int fd)
{
    gint64 until = g_get_monotonic_time() + DROP_MS * 1000;
    struct pollfd end = {.fd = fd, .events = POLLIN};
    char data[4096];

    while (g_get_monotonic_time() < until) {
        ssize_t ret;

        if (poll(&end, 1, 1000) <= 0)
            continue;
        ret = recv(fd, data, sizeof(data), MSG_DONTWAIT);
        if (ret == 0 || (ret < 0 && errno != EAGAIN && errno != EINTR))
            return true;
    }
    return false;
}
