// SPDX-License-Identifier: MIT
/*
 * LD_PRELOAD for the outer QEMU's render server, on machines without /dev/udmabuf.
 *
 * lavapipe offers VK_KHR_external_memory_fd and dma-buf only where it can open /dev/udmabuf. What
 * it makes there is memory that can be handed on as a file descriptor; a duplicate of the memfd
 * that it passes in is that too, for everything that happens between the render server and QEMU,
 * which both only map it. In other processes this library does nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define UDMABUF_PATH "/dev/udmabuf"

/* The one device that our fake /dev/udmabuf descriptors are: an anonymous file of this name. */
#define FAKE_NAME "rig-udmabuf"

static bool active(void)
{
    return strcmp(program_invocation_short_name, "virgl_render_server") == 0;
}

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static bool is_fake(int fd)
{
    char link[64], target[64];
    ssize_t len;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    len = readlink(link, target, sizeof(target) - 1);
    if (len < 0)
        return false;
    target[len] = '\0';
    return strncmp(target, "/memfd:" FAKE_NAME, strlen("/memfd:" FAKE_NAME)) == 0;
}

static int open_fake(const char *path, int flags, mode_t mode, const char *name)
{
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))next(name);

    if (active() && strcmp(path, UDMABUF_PATH) == 0)
        return memfd_create(FAKE_NAME, MFD_CLOEXEC);
    return real(path, flags, mode);
}

static mode_t mode_of(int flags, va_list args)
{
    return (flags & (O_CREAT | O_TMPFILE)) ? va_arg(args, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_of(flags, args);
    va_end(args);
    return open_fake(path, flags, mode, "open");
}

int open64(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_of(flags, args);
    va_end(args);
    return open_fake(path, flags, mode, "open64");
}

/* A buffer that starts inside its memfd cannot be told to a mapper: nothing here asks for one. */
static int create(const struct udmabuf_create *request)
{
    if (request->offset != 0) {
        errno = EINVAL;
        return -1;
    }
    return fcntl((int)request->memfd, F_DUPFD_CLOEXEC, 0);
}

static int create_list(const struct udmabuf_create_list *request)
{
    if (request->count != 1 || request->list[0].offset != 0) {
        errno = EINVAL;
        return -1;
    }
    return fcntl((int)request->list[0].memfd, F_DUPFD_CLOEXEC, 0);
}

int ioctl(int fd, unsigned long request, ...)
{
    int (*real)(int, unsigned long, ...) = (int (*)(int, unsigned long, ...))next("ioctl");
    va_list args;
    void *arg;

    va_start(args, request);
    arg = va_arg(args, void *);
    va_end(args);
    if (active() && (request == UDMABUF_CREATE || request == UDMABUF_CREATE_LIST) && is_fake(fd)) {
        return request == UDMABUF_CREATE ? create(arg) : create_list(arg);
    }
    return real(fd, request, arg);
}
