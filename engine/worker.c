// SPDX-License-Identifier: MIT
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <virglrenderer.h>

/* The number that the next opened file gets; -1: none can be opened. */
static int next_number(void)
{
    int fd = eventfd(0, EFD_CLOEXEC);

    if (fd >= 0)
        close(fd);
    return fd;
}

/* Only the protocol of the render server uses sockets of this type. */
static bool is_connection(int fd)
{
    int type = 0;
    socklen_t size = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

/* The first file that virglrenderer gets for a context is the connection to its worker. */
int worker_create_context(uint32_t ctx_id, uint32_t capset, uint32_t nlen, const char *name,
                          int *connection)
{
    int fd = next_number();
    int ret = virgl_renderer_context_create_with_flags(ctx_id, capset, nlen, name);

    *connection = -1;
    if (ret != 0)
        return ret;
    if (fd >= 0 && is_connection(fd))
        *connection = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (*connection >= 0)
        return 0;
    /* Without it a dead worker's fences would count as done. */
    virgl_renderer_context_destroy(ctx_id);
    return EIO;
}

bool worker_is_gone(int connection)
{
    struct pollfd end = {.fd = connection};

    return poll(&end, 1, 0) > 0 && (end.revents & (POLLHUP | POLLERR));
}
