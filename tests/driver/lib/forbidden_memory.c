/* SPDX-License-Identifier: MIT */
/* Memory of an engine that must not be shown to a guest. */
#include "forbidden_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/memfd.h>
#include <linux/userfaultfd.h>

#define RW (PROT_READ | PROT_WRITE)

static void *map_fd(int fd, void *at, size_t size, int prot, int flags)
{
    void *addr;

    if (fd < 0)
        return MAP_FAILED;
    if (ftruncate(fd, (off_t)size) < 0) {
        close(fd);
        return MAP_FAILED;
    }
    addr = mmap(at, size, prot, flags | (at ? MAP_FIXED : 0), fd, 0);
    close(fd);
    return addr;
}

static void *map_anonymous(void *at, size_t size)
{
    return mmap(at, size, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | (at ? MAP_FIXED : 0), -1,
                0);
}

static void *map_private(void *at, size_t size)
{
    return map_fd(memfd_create("private", MFD_CLOEXEC), at, size, RW, MAP_PRIVATE);
}

static void *map_read_only(void *at, size_t size)
{
    return map_fd(memfd_create("read-only", MFD_CLOEXEC), at, size, PROT_READ, MAP_SHARED);
}

static void *map_no_access(void *at, size_t size)
{
    return map_fd(memfd_create("no-access", MFD_CLOEXEC), at, size, PROT_NONE, MAP_SHARED);
}

static void *map_file_in(const char *dir, void *at, size_t size)
{
    g_autofree char *path = g_build_filename(dir, "vgpu-test-XXXXXX", NULL);
    int fd = mkostemp(path, O_CLOEXEC);

    if (fd >= 0)
        unlink(path);
    return map_fd(fd, at, size, RW, MAP_SHARED);
}

static void *map_file(void *at, size_t size)
{
    return map_file_in("/var/tmp", at, size);
}

/* The memfds' kind of file system, but one that others can access by path. */
static void *map_tmpfs(void *at, size_t size)
{
    return map_file_in("/dev", at, size);
}

static void *map_secret(void *at, size_t size)
{
    return map_fd((int)syscall(SYS_memfd_secret, O_CLOEXEC), at, size, RW, MAP_SHARED);
}

/* The owner of registered memory can make the host wait at every touch. */
static void *map_userfaultfd(void *at, size_t size)
{
    void *addr = map_fd(memfd_create("userfaultfd", MFD_CLOEXEC), at, size, RW, MAP_SHARED);
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register reg = {
        .range = {(uintptr_t)addr, size},
        .mode = UFFDIO_REGISTER_MODE_MISSING,
    };

    if (addr == MAP_FAILED || fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0 ||
        ioctl(fd, UFFDIO_REGISTER, &reg) < 0)
        return MAP_FAILED;
    return addr;
}

const ForbiddenMemory forbidden_memory[] = {
    {"private anonymous", map_anonymous},
    {"a private memfd", map_private},
    {"a read-only memfd", map_read_only},
    {"a memfd without access", map_no_access},
    {"a file on disk", map_file},
    {"a file of a tmpfs", map_tmpfs},
    {"secret memory", map_secret},
    {"memory under userfaultfd", map_userfaultfd},
    {NULL, NULL},
};

typedef struct {
    const ForbiddenMemory *kind;
    uint64_t size;
    uint64_t addr;
} MapCall;

static int call_map(EngineCtx *ctx, void *arg)
{
    MapCall *call = arg;
    void *addr = call->kind->map((void *)(uintptr_t)call->addr, call->size);

    (void)ctx;
    if (addr == MAP_FAILED)
        return errno == EPERM ? -ENOSYS : -errno;
    call->addr = (uintptr_t)addr;
    return 0;
}

int peer_map_forbidden(EnginePeer *peer, const ForbiddenMemory *kind, uint64_t size, uint64_t *addr)
{
    MapCall call = {.kind = kind, .size = size, .addr = *addr};
    int ret = engine_peer_call(peer, call_map, &call, sizeof(call));

    *addr = call.addr;
    return ret;
}
