// SPDX-License-Identifier: MIT
/* The worker is on this host: a socket, descriptors of memory, and futexes. */
#include "lib/descriptor.h"
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

/* Its worker is of the host's own version. */
static bool open_socket(const char *path, uint16_t minor)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int reason = ENAMETOOLONG;

    (void)minor;
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

static bool send_message(const void *message, size_t bytes)
{
    ssize_t sent;

    do
        sent = send(worker, message, bytes, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)bytes;
}

/* A signal of the program's, without SA_RESTART, is no end of the worker. One that ends before it
 * has read all is reported once, and what it has sent comes after that. */
static bool ask_worker(const void *message, size_t bytes, void *reply, size_t reply_bytes)
{
    ssize_t got;

    if (!send_message(message, bytes))
        return false;
    do
        got = recv(worker, reply, reply_bytes, 0);
    while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    return got == (ssize_t)reply_bytes;
}

static bool share_memory(const struct control_message *message, struct control_reply *reply,
                         bool *is_mapped)
{
    int fd;

    if (!send_message(message, sizeof(*message)))
        return false;
    if (descriptor_receive(worker, reply, sizeof(*reply), 0, &fd, 1) != (ssize_t)sizeof(*reply)) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    if (fd < 0)
        return true;
    *is_mapped = reply->result == CONTROL_OK &&
                 mmap((void *)(uintptr_t)message->address, message->bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
    close(fd);
    return true;
}

static void wake_worker(struct channel_shared *channel)
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
    ask_worker,
    share_memory,
    NULL,
    wake_worker,
    await_answers,
    is_gone,
    end_worker,
    close_socket,
};
