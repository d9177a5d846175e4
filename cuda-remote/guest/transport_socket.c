// SPDX-License-Identifier: MIT
/* The worker is on this host: a socket, descriptors of memory, and futexes. */
#include "transport.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LOOK_AFTER 50u /* milliseconds after which a worker that does not answer is looked at */

static int worker = -1;

static void close_socket(void)
{
    close(worker);
    worker = -1;
}

static bool open_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int reason = ENAMETOOLONG;

    if (strlen(path) < sizeof(address.sun_path)) {
        strcpy(address.sun_path, path);
        worker = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (worker >= 0 && connect(worker, (const struct sockaddr *)&address, sizeof(address)) == 0)
            return true;
        reason = errno;
    }
    if (worker >= 0)
        close_socket();
    errno = reason;
    return false;
}

static bool tell(const void *message, size_t bytes)
{
    return send(worker, message, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

static bool ask(const void *message, size_t bytes, void *reply, size_t reply_bytes)
{
    return tell(message, bytes) && recv(worker, reply, reply_bytes, 0) == (ssize_t)reply_bytes;
}

/* @fd: unchanged if there comes none. */
static bool receive_memory(struct control_reply *reply, int *fd)
{
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {.iov_base = reply, .iov_len = sizeof(*reply)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_LEN(sizeof(int))};
    struct cmsghdr *header;

    if (recvmsg(worker, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(*reply))
        return false;
    header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(fd, CMSG_DATA(header), sizeof(int));
    return true;
}

static bool share(const struct control_message *message, struct control_reply *reply,
                  bool *is_mapped)
{
    int fd = -1;

    if (!tell(message, sizeof(*message)) || !receive_memory(reply, &fd))
        return false;
    if (fd < 0)
        return true;
    *is_mapped = reply->result == CONTROL_OK &&
                 mmap((void *)(uintptr_t)message->address, message->bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
    close(fd);
    return true;
}

static void wake(struct channel_shared *channel)
{
    channel_wake(&channel->worker.state);
}

static void await_answers(struct channel_shared *channel, uint64_t answers)
{
    channel_await_answer(channel, answers, LOOK_AFTER);
}

static bool is_gone(void)
{
    struct pollfd end = {.fd = worker, .events = POLLRDHUP};

    return poll(&end, 1, 0) > 0 && end.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL);
}

static void end_worker(int milliseconds)
{
    struct pollfd end = {.fd = worker};

    shutdown(worker, SHUT_WR);
    poll(&end, 1, milliseconds);
}

const struct transport transport_socket = {
    "the slice's socket",
    "its guard refused it; \"journalctl -u 'vgpu-guard@*'\" on the host says why",
    open_socket,
    ask,
    share,
    wake,
    await_answers,
    is_gone,
    end_worker,
    close_socket,
};
