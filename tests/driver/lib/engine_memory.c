/* SPDX-License-Identifier: MIT */
/* Memory of every kind in the fake engine. */
#include "engine_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/memfd.h>
#include <linux/udmabuf.h>

#include "../holder/mm_holder.h"
#include "held_mm.h"

#define PAGE  4096ull
#define CHUNK (16 * 1024)

/* In the engine's process: of the latest memfd. */
static int last_memfd = -1;

typedef struct {
    MemoryKind kind;
    uint64_t size;
    uint64_t addr;
} AllocCall;

uint32_t memory_pattern(uint64_t page, uint64_t word)
{
    return (uint32_t)(0x5a000000u ^ (page * 2654435761u) ^ (word * 40503u));
}

static void fill_memory(void *addr, uint64_t size)
{
    uint32_t *words = addr;

    for (uint64_t page = 0; page < size / PAGE; page++) {
        for (uint64_t i = 0; i < PAGE / 4; i++)
            words[page * (PAGE / 4) + i] = memory_pattern(page, i);
    }
}

static int new_memfd(uint64_t size, unsigned flags)
{
    int fd = memfd_create("engine", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)size) < 0)
        return -errno;
    last_memfd = fd;
    return fd;
}

/* Of @parts parts of a memfd, all of which are its beginning. */
static int new_udmabuf(uint64_t size, unsigned flags, unsigned parts)
{
    g_autofree struct udmabuf_create_list *create =
        g_malloc0(sizeof(*create) + parts * sizeof(create->list[0]));
    int memfd = new_memfd(size, flags);
    int dev, buf;

    create->flags = UDMABUF_FLAGS_CLOEXEC;
    create->count = parts;
    for (unsigned i = 0; i < parts; i++) {
        create->list[i].memfd = (uint32_t)memfd;
        create->list[i].size = size / parts;
    }
    /* Linux 6.12 hits a BUG if udmabuf allocates a memfd's huge pages (memfd_alloc_folio()). */
    if (fallocate(memfd, 0, 0, (off_t)size) < 0 || fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
        return -errno;
    dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    if (dev < 0)
        return -errno;
    buf = ioctl(dev, UDMABUF_CREATE_LIST, create);
    if (buf < 0)
        buf = -errno;
    close(dev);
    return buf;
}

static int new_test_buffer(uint64_t size)
{
    struct holder_buffer buffer = {.size = size};
    int holder = open(HELD_MM_NODE, O_RDWR | O_CLOEXEC);
    int ret;

    if (holder < 0)
        return -errno;
    ret = ioctl(holder, HOLDER_BUFFER, &buffer) ? -errno : buffer.fd;
    close(holder);
    return ret;
}

static int new_file(uint64_t size)
{
    char path[] = "/var/tmp/vgpu-test-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);

    if (fd < 0)
        return -errno;
    unlink(path);
    return ftruncate(fd, (off_t)size) < 0 ? -errno : fd;
}

/* Maps and fills @fd, then changes the mapping to @prot. */
static int map_filled(int fd, int prot, int flags, uint64_t size, void **addr)
{
    if (fd < 0 && !(flags & MAP_ANONYMOUS))
        return fd;
    *addr = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (*addr == MAP_FAILED)
        return -errno;
    fill_memory(*addr, size);
    if (prot == (PROT_READ | PROT_WRITE))
        return 0;
    /*
     * A mapping that was writable once can become writable again; the test needs a read-only one.
     */
    munmap(*addr, size);
    *addr = mmap(NULL, size, prot, flags, fd, 0);
    return *addr == MAP_FAILED ? -errno : 0;
}

static int map_untouched(int fd, uint64_t size, void **addr)
{
    int ret = map_filled(fd, PROT_READ | PROT_WRITE, MAP_SHARED, size, addr);

    if (ret)
        return ret;
    munmap(*addr, size);
    *addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return *addr == MAP_FAILED ? -errno : 0;
}

static int map_two_files(uint64_t size, void **addr)
{
    uint64_t half = size / 2;
    int ret = map_filled(new_memfd(size, 0), PROT_READ | PROT_WRITE, MAP_SHARED, size, addr);
    int fd;

    if (ret)
        return ret;
    fd = new_memfd(half, 0);
    if (fd < 0)
        return fd;
    if (mmap((uint8_t *)*addr + half, size - half, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             fd, 0) == MAP_FAILED)
        return -errno;
    return 0;
}

static int map_half(uint64_t size, void **addr)
{
    int ret = map_filled(new_memfd(size, 0), PROT_READ | PROT_WRITE, MAP_SHARED, size, addr);

    if (!ret)
        munmap((uint8_t *)*addr + size / 2, PAGE);
    return ret;
}

static int call_alloc(EngineCtx *ctx, void *arg)
{
    const int rw = PROT_READ | PROT_WRITE;
    const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
    const unsigned huge = MFD_HUGETLB | MFD_HUGE_2MB;
    AllocCall *call = arg;
    void *addr = NULL;
    int ret = -EINVAL;

    (void)ctx;
    switch (call->kind) {
    case MEMORY_MEMFD:
        ret = map_filled(new_memfd(call->size, 0), rw, MAP_SHARED, call->size, &addr);
        break;
    case MEMORY_UDMABUF:
        ret = map_filled(new_udmabuf(call->size, 0, 1), rw, MAP_SHARED, call->size, &addr);
        break;
    case MEMORY_UDMABUF_HUGE:
        ret = map_filled(new_udmabuf(call->size, huge, 1), rw, MAP_SHARED, call->size, &addr);
        break;
    case MEMORY_UDMABUF_TWICE:
        ret = map_filled(new_udmabuf(call->size, huge, 2), rw, MAP_SHARED, call->size, &addr);
        break;
    case MEMORY_TEST_BUFFER:
        ret = map_untouched(new_test_buffer(call->size), call->size, &addr);
        break;
    case MEMORY_MEMFD_PRIVATE:
        ret = map_filled(new_memfd(call->size, 0), rw, MAP_PRIVATE, call->size, &addr);
        break;
    case MEMORY_MEMFD_READ_ONLY:
        ret = map_filled(new_memfd(call->size, 0), PROT_READ, MAP_SHARED, call->size, &addr);
        break;
    case MEMORY_ANONYMOUS:
        ret = map_filled(-1, rw, anonymous, call->size, &addr);
        break;
    case MEMORY_HUGETLB_PRIVATE:
        ret = map_filled(-1, rw, anonymous | MAP_HUGETLB, call->size, &addr);
        break;
    case MEMORY_FILE:
        ret = map_filled(new_file(call->size), rw, MAP_SHARED, call->size, &addr);
        break;
    case MEMORY_HALF_MAPPED:
        ret = map_half(call->size, &addr);
        break;
    case MEMORY_TWO_FILES:
        ret = map_two_files(call->size, &addr);
        break;
    }
    call->addr = (uintptr_t)addr;
    return ret;
}

int peer_alloc(EnginePeer *peer, MemoryKind kind, uint64_t size, uint64_t *addr)
{
    AllocCall call = {.kind = kind, .size = size};
    int ret = engine_peer_call(peer, call_alloc, &call, sizeof(call));

    *addr = call.addr;
    return ret;
}

typedef struct {
    uint64_t addr;
    uint64_t len;
    uint8_t data[CHUNK];
} CopyCall;

static int call_peek(EngineCtx *ctx, void *arg)
{
    CopyCall *call = arg;

    (void)ctx;
    memcpy(call->data, (const void *)(uintptr_t)call->addr, call->len);
    return 0;
}

static int call_poke(EngineCtx *ctx, void *arg)
{
    CopyCall *call = arg;

    (void)ctx;
    memcpy((void *)(uintptr_t)call->addr, call->data, call->len);
    return 0;
}

static int copy_memory(EnginePeer *peer, EngineCall fn, uint64_t addr, uint8_t *in,
                       const uint8_t *out, size_t len)
{
    g_autofree CopyCall *call = g_malloc0(sizeof(*call));

    for (size_t done = 0; done < len; done += call->len) {
        int ret;

        call->addr = addr + done;
        call->len = MIN(len - done, CHUNK);
        if (out)
            memcpy(call->data, out + done, call->len);
        ret = engine_peer_call(peer, fn, call, sizeof(*call));
        if (ret)
            return ret;
        if (in)
            memcpy(in + done, call->data, call->len);
    }
    return 0;
}

int peer_peek(EnginePeer *peer, uint64_t addr, void *buf, size_t len)
{
    return copy_memory(peer, call_peek, addr, buf, NULL, len);
}

int peer_poke(EnginePeer *peer, uint64_t addr, const void *buf, size_t len)
{
    return copy_memory(peer, call_poke, addr, NULL, buf, len);
}

static int call_munmap(EngineCtx *ctx, void *arg)
{
    AllocCall *call = arg;

    (void)ctx;
    return munmap((void *)(uintptr_t)call->addr, call->size) < 0 ? -errno : 0;
}

int peer_munmap(EnginePeer *peer, uint64_t addr, uint64_t size)
{
    AllocCall call = {.addr = addr, .size = size};

    return engine_peer_call(peer, call_munmap, &call, sizeof(call));
}

static int call_punch_hole(EngineCtx *ctx, void *arg)
{
    AllocCall *call = arg;

    (void)ctx;
    return fallocate(last_memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)call->addr,
                     (off_t)call->size) < 0
               ? -errno
               : 0;
}

int peer_punch_hole(EnginePeer *peer, uint64_t offset, uint64_t size)
{
    AllocCall call = {.addr = offset, .size = size};

    return engine_peer_call(peer, call_punch_hole, &call, sizeof(call));
}

static int call_truncate(EngineCtx *ctx, void *arg)
{
    AllocCall *call = arg;

    (void)ctx;
    return ftruncate(last_memfd, (off_t)call->size) < 0 ? -errno : 0;
}

int peer_truncate(EnginePeer *peer, uint64_t size)
{
    AllocCall call = {.size = size};

    return engine_peer_call(peer, call_truncate, &call, sizeof(call));
}
