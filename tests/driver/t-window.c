/* SPDX-License-Identifier: MIT */
/* The host-visible window: the guest sees exactly the engine's published memory. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_buffer.h"
#include "testbed.h"

#define SIZE (64 * PAGE_BYTES)

/* Both ways, with memory of one kind. */
static void check_shown(MemoryKind kind)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    volatile uint8_t *window = testbed_window(tb);
    uint32_t word = 0xcafef00d, seen = 0;
    uint64_t addr;

    assert_window_blank(tb, 0);
    assert_ok(peer_alloc(tb->engine, kind, SIZE, &addr));
    assert_ok(peer_publish(tb->engine, 0, SIZE, addr));
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/window_published_bytes"), ==, SIZE);
    for (uint64_t page = 0; page < SIZE / PAGE_BYTES; page++)
        assert_window_pattern(tb, page * PAGE_BYTES, page);
    assert_window_blank(tb, SIZE);

    *(volatile uint32_t *)(window + 3 * PAGE_BYTES + 12) = 0xdeadbeef;
    assert_ok(peer_peek(tb->engine, addr + 3 * PAGE_BYTES + 12, &seen, sizeof(seen)));
    g_assert_cmphex(seen, ==, 0xdeadbeef);
    assert_ok(peer_poke(tb->engine, addr + SIZE - 4, &word, sizeof(word)));
    g_assert_cmphex(*(volatile uint32_t *)(window + SIZE - 4), ==, word);

    assert_ok(peer_unpublish(tb->engine, 0, SIZE));
    for (uint64_t page = 0; page < SIZE / PAGE_BYTES; page++)
        assert_window_blank(tb, page * PAGE_BYTES);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/window_published_bytes"), ==, 0);
    /* The engine keeps its own. */
    assert_ok(peer_peek(tb->engine, addr + 3 * PAGE_BYTES + 12, &seen, sizeof(seen)));
    g_assert_cmphex(seen, ==, 0xdeadbeef);
}

static void require_udmabuf(void)
{
    if (access("/dev/udmabuf", R_OK | W_OK))
        driver_test_skip("this kernel has no /dev/udmabuf");
}

static void test_memfd(void)
{
    check_shown(MEMORY_MEMFD);
}

static void test_udmabuf(void)
{
    require_udmabuf();
    check_shown(MEMORY_UDMABUF);
}

/* Parts of one mapping, out of order, at other offsets, next to each other. */
static void test_pieces(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t addr;

    testbed_window(tb);
    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, SIZE, &addr));
    for (uint64_t page = 0; page < 16; page++)
        assert_ok(peer_publish(tb->engine, MIB + (15 - page) * PAGE_BYTES, PAGE_BYTES,
                               addr + page * PAGE_BYTES));
    for (uint64_t page = 0; page < 16; page++)
        assert_window_pattern(tb, MIB + (15 - page) * PAGE_BYTES, page);
    /* The last page of the window. */
    assert_ok(
        peer_publish(tb->engine, TESTBED_WINDOW - PAGE_BYTES, PAGE_BYTES, addr + 20 * PAGE_BYTES));
    assert_window_pattern(tb, TESTBED_WINDOW - PAGE_BYTES, 20);
    assert_ok(peer_unpublish(tb->engine, MIB + 7 * PAGE_BYTES, PAGE_BYTES));
    assert_window_blank(tb, MIB + 7 * PAGE_BYTES);
    assert_window_pattern(tb, MIB + 6 * PAGE_BYTES, 9);
    assert_window_pattern(tb, MIB + 8 * PAGE_BYTES, 7);
}

/* Another range at the same offset: never a page of the old. */
static void test_again(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t addr;

    testbed_window(tb);
    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, SIZE, &addr));
    for (uint64_t i = 0; i < 20; i++) {
        assert_window_blank(tb, 8 * PAGE_BYTES);
        assert_ok(peer_publish(tb->engine, 8 * PAGE_BYTES, PAGE_BYTES, addr + i * PAGE_BYTES));
        assert_window_pattern(tb, 8 * PAGE_BYTES, i);
        assert_ok(peer_unpublish(tb->engine, 8 * PAGE_BYTES, PAGE_BYTES));
    }
}

static void test_refusals(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t addr;

    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, SIZE, &addr));
    assert_fails(peer_publish(tb->engine, 12, PAGE_BYTES, addr), EINVAL);
    assert_fails(peer_publish(tb->engine, 0, 100, addr), EINVAL);
    assert_fails(peer_publish(tb->engine, 0, 0, addr), EINVAL);
    assert_fails(peer_publish(tb->engine, 0, PAGE_BYTES, addr + 8), EINVAL);
    assert_fails(peer_publish(tb->engine, TESTBED_WINDOW, PAGE_BYTES, addr), EINVAL);
    assert_fails(peer_publish(tb->engine, TESTBED_WINDOW - PAGE_BYTES, 2 * PAGE_BYTES, addr),
                 EINVAL);
    assert_fails(peer_publish(tb->engine, PAGE_BYTES, UINT64_MAX & ~0xfffull, addr), EINVAL);
    assert_fails(peer_publish(tb->engine, 0, PAGE_BYTES, UINT64_MAX & ~0xfffull), EINVAL);

    assert_ok(peer_publish(tb->engine, 16 * PAGE_BYTES, 8 * PAGE_BYTES, addr));
    assert_fails(peer_publish(tb->engine, 16 * PAGE_BYTES, 8 * PAGE_BYTES, addr), EEXIST);
    assert_fails(peer_publish(tb->engine, 15 * PAGE_BYTES, 2 * PAGE_BYTES, addr), EEXIST);
    assert_fails(peer_publish(tb->engine, 23 * PAGE_BYTES, 2 * PAGE_BYTES, addr), EEXIST);
    assert_fails(peer_publish(tb->engine, 0, 64 * PAGE_BYTES, addr), EEXIST);
    assert_ok(peer_publish(tb->engine, 24 * PAGE_BYTES, PAGE_BYTES, addr));
    assert_fails(peer_unpublish(tb->engine, 16 * PAGE_BYTES, PAGE_BYTES), ENOENT);
    assert_fails(peer_unpublish(tb->engine, 17 * PAGE_BYTES, 7 * PAGE_BYTES), ENOENT);
    assert_fails(peer_unpublish(tb->engine, 0, PAGE_BYTES), ENOENT);
    assert_ok(peer_unpublish(tb->engine, 16 * PAGE_BYTES, 8 * PAGE_BYTES));
    assert_fails(peer_unpublish(tb->engine, 16 * PAGE_BYTES, 8 * PAGE_BYTES), ENOENT);
}

/* Memory that no guest may see. */
static void test_forbidden(void)
{
    static const MemoryKind kinds[] = {MEMORY_MEMFD_PRIVATE, MEMORY_MEMFD_READ_ONLY,
                                       MEMORY_ANONYMOUS,     MEMORY_FILE,
                                       MEMORY_HALF_MAPPED,   MEMORY_TWO_FILES};
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct vgpu_mem_entry entry = {TESTBED_RAM_IOVA + 4 * MIB, PAGE_BYTES};
    uint64_t addr;

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        int ret;

        assert_ok(peer_alloc(tb->engine, kinds[i], SIZE, &addr));
        ret = peer_publish(tb->engine, 0, SIZE, addr);
        if (ret != -EACCES)
            g_error("memory of kind %d: %s", kinds[i], ret ? g_strerror(-ret) : "was published");
    }
    /* Nothing mapped at all. */
    assert_fails(peer_publish(tb->engine, 0, PAGE_BYTES, 0x1000), EACCES);
    /* Guest memory, which would let a guest see memory that its VM has unmapped. */
    assert_ok(peer_pin(tb->engine, &entry, 1, VGPU_MEM_WRITE, NULL, &addr));
    assert_fails(peer_publish(tb->engine, 0, PAGE_BYTES, addr), EACCES);
    assert_window_blank(tb, 0);
}

static void test_forbidden_hugetlb(void)
{
    g_autoptr(Testbed) tb = NULL;
    uint64_t addr;

    if (sysfs_write("/proc/sys/vm/nr_hugepages", "4"))
        driver_test_skip("no huge pages in this kernel");
    tb = testbed_new(TESTBED_AT_GUEST);
    if (peer_alloc(tb->engine, MEMORY_HUGETLB_PRIVATE, 2 * MIB, &addr))
        driver_test_skip("no huge page to be had");
    assert_fails(peer_publish(tb->engine, 0, 2 * MIB, addr), EACCES);
    sysfs_write("/proc/sys/vm/nr_hugepages", "0");
}

/*
 * A process that is VMM and engine at once cannot publish a window in a window, nor deadlock
 * itself.
 */
static void test_own_window(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    struct vgpu_engine_ready ready = {.argsz = sizeof(ready), .num_capsets = 1};
    EngineCtx self = {0};
    EngineState state = {0};
    struct vgpu_window_range range = {.argsz = sizeof(range), .size = PAGE_BYTES};
    g_autofree char *node = g_build_filename("/dev/vgpu", tb->uuid, NULL);
    uint32_t *shared;
    int fd;

    self.state = &state;
    self.fd = open(node, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    assert_ok(engine_ioctl(&self, VGPU_ENGINE_ATTACH, NULL));
    assert_ok(engine_ioctl(&self, VGPU_ENGINE_READY, &ready));
    tb->stage = TESTBED_AT_ENGINE;
    testbed_advance(tb, TESTBED_AT_GUEST);

    range.epoch = engine_epoch(&self);
    range.addr = (uintptr_t)testbed_window(tb);
    assert_fails(engine_ioctl(&self, VGPU_ENGINE_WINDOW_PUBLISH, &range), EACCES);

    fd = memfd_create("own", MFD_CLOEXEC);
    g_assert_cmpint(ftruncate(fd, PAGE_BYTES), ==, 0);
    shared = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    shared[0] = 0x600df00d;
    range.addr = (uintptr_t)shared;
    if (!engine_ioctl(&self, VGPU_ENGINE_WINDOW_PUBLISH, &range))
        g_assert_cmphex(*(volatile uint32_t *)testbed_window(tb), ==, 0x600df00d);
    close(self.fd);
    testbed_close_vmm(tb);
}

/*
 * Memory that the engine unmaps is removed from the guest, and does not come back with other
 * memory.
 */
static void early_munmap(MemoryKind kind)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t addr;

    testbed_window(tb);
    assert_ok(peer_alloc(tb->engine, kind, SIZE, &addr));
    assert_ok(peer_publish(tb->engine, 0, SIZE, addr));
    for (uint64_t page = 0; page < 32; page++)
        assert_window_pattern(tb, page * PAGE_BYTES, page);
    assert_ok(peer_munmap(tb->engine, addr + 8 * PAGE_BYTES, 8 * PAGE_BYTES));
    for (uint64_t page = 8; page < 16; page++)
        assert_window_blank(tb, page * PAGE_BYTES);
    assert_window_pattern(tb, 7 * PAGE_BYTES, 7);
    assert_window_pattern(tb, 40 * PAGE_BYTES, 40);
    assert_ok(peer_munmap(tb->engine, addr, SIZE));
    for (uint64_t page = 0; page < 64; page++)
        assert_window_blank(tb, page * PAGE_BYTES);
    assert_ok(peer_unpublish(tb->engine, 0, SIZE));
}

static void test_early_munmap(void)
{
    early_munmap(MEMORY_MEMFD);
}

static void test_early_munmap_udmabuf(void)
{
    require_udmabuf();
    early_munmap(MEMORY_UDMABUF);
}

static int call_remap(EngineCtx *ctx, void *arg)
{
    void *addr = (void *)(uintptr_t)*(uint64_t *)arg;
    void *got = mmap(addr, PAGE_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

    (void)ctx;
    if (got == MAP_FAILED)
        return -errno;
    strcpy(got, "a secret of the engine");
    return 0;
}

static void test_remapped(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t addr;

    testbed_window(tb);
    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, SIZE, &addr));
    assert_ok(peer_publish(tb->engine, 0, SIZE, addr));
    assert_window_pattern(tb, 0, 0);
    assert_ok(engine_peer_call(tb->engine, call_remap, &addr, sizeof(addr)));
    assert_window_blank(tb, 0);
    assert_window_pattern(tb, PAGE_BYTES, 1);
}

/* The guest sees the engine's memory even after pages of the file are replaced. */
static void test_punch_hole(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    volatile uint8_t *window = testbed_window(tb);
    uint32_t word = 0x11223344;
    uint64_t addr;

    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, SIZE, &addr));
    assert_ok(peer_publish(tb->engine, 0, SIZE, addr));
    for (uint64_t page = 0; page < 64; page++)
        assert_window_pattern(tb, page * PAGE_BYTES, page);
    assert_ok(peer_punch_hole(tb->engine, 4 * PAGE_BYTES, 4 * PAGE_BYTES));
    g_assert_cmphex(*(volatile uint32_t *)(window + 5 * PAGE_BYTES), ==, 0);
    assert_ok(peer_poke(tb->engine, addr + 5 * PAGE_BYTES, &word, sizeof(word)));
    g_assert_cmphex(*(volatile uint32_t *)(window + 5 * PAGE_BYTES), ==, word);
    assert_window_pattern(tb, 8 * PAGE_BYTES, 8);

    /* Beyond the end of the file: no signal for the VMM. */
    assert_ok(peer_truncate(tb->engine, 32 * PAGE_BYTES));
    assert_window_blank(tb, 40 * PAGE_BYTES);
    assert_window_pattern(tb, 31 * PAGE_BYTES, 31);
}

/*
 * A GPU's driver that is busy, or whose GPU sleeps, lets a fault succeed without a page. The guest
 * waits until it gets the memory, and never sees a blank page in its place.
 */
static void test_come_again(void)
{
    g_autoptr(Testbed) tb = NULL;
    uint64_t addr;

    test_buffer_faults(0, 0);
    tb = testbed_new(TESTBED_AT_GUEST);
    for (unsigned again = 1; again < 8; again++) {
        assert_ok(peer_alloc(tb->engine, MEMORY_TEST_BUFFER, SIZE, &addr));
        assert_ok(peer_publish(tb->engine, again * SIZE, SIZE, addr));
        test_buffer_faults(again, 0);
        for (uint64_t page = SIZE / PAGE_BYTES; page-- > 0;)
            assert_window_pattern(tb, again * SIZE + page * PAGE_BYTES, page);
    }
}

/* Where the engine's own access is SIGBUS, there is a blank page, and only there. */
static void test_no_memory_there(void)
{
    g_autoptr(Testbed) tb = NULL;
    uint64_t addr;

    test_buffer_faults(0, 0);
    tb = testbed_new(TESTBED_AT_GUEST);
    testbed_window(tb);
    assert_ok(peer_alloc(tb->engine, MEMORY_TEST_BUFFER, SIZE, &addr));
    assert_ok(peer_publish(tb->engine, 0, SIZE, addr));
    test_buffer_faults_fail();
    assert_window_blank(tb, 3 * PAGE_BYTES);
    test_buffer_faults(0, 0);
    assert_window_pattern(tb, 4 * PAGE_BYTES, 4);
    assert_window_pattern(tb, 2 * PAGE_BYTES, 2);
    assert_window_blank(tb, 3 * PAGE_BYTES);
}

/* Every mapping of the window by a VMM shows the same. */
static void test_several_mappings(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    volatile uint32_t *part = vmm_region_mmap(&tb->dev, VFIO_PCI_BAR2_REGION_INDEX, 16 * PAGE_BYTES,
                                              16 * PAGE_BYTES, PROT_READ | PROT_WRITE);
    uint64_t addr;

    g_assert_true((void *)part != MAP_FAILED);
    testbed_window(tb);
    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, SIZE, &addr));
    assert_ok(peer_publish(tb->engine, 0, SIZE, addr));
    for (uint64_t i = 0; i < 16; i++)
        g_assert_cmphex(part[i * 1024 + 3], ==, memory_pattern(16 + i, 3));
    assert_window_pattern(tb, 20 * PAGE_BYTES, 20);
    /* QEMU splits and shortens mappings. */
    g_assert_cmpint(munmap((void *)(part + 4 * 1024), 4 * PAGE_BYTES), ==, 0);
    g_assert_cmphex(part[8 * 1024], ==, memory_pattern(24, 0));
    assert_ok(peer_unpublish(tb->engine, 0, SIZE));
    g_assert_cmphex(part[0], ==, VGPU_WINDOW_BLANK);
    g_assert_cmphex(part[9 * 1024], ==, VGPU_WINDOW_BLANK);
    assert_window_blank(tb, 20 * PAGE_BYTES);
    munmap((void *)part, 16 * PAGE_BYTES);
}

/* Only the processor may use the pages: get_user_pages() must refuse them. */
static void test_no_gup(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct iovec iov = {.iov_base = (void *)testbed_window(tb), .iov_len = PAGE_BYTES};
    uint64_t addr;
    int pipefd[2];

    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, SIZE, &addr));
    assert_ok(peer_publish(tb->engine, 0, SIZE, addr));
    g_assert_cmpint(pipe(pipefd), ==, 0);
    for (int i = 0; i < 2; i++) {
        g_assert_cmpint(vmsplice(pipefd[1], &iov, 1, SPLICE_F_NONBLOCK), ==, -1);
        g_assert_cmpint(errno, ==, EFAULT);
        assert_window_pattern(tb, 0, 0);
    }
    /* A processor copies. */
    g_assert_cmpint(write(pipefd[1], (void *)testbed_window(tb), 64), ==, 64);
}

#define MANY_PAGES 4096

static void test_thousands(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    volatile uint8_t *window = testbed_window(tb);
    uint64_t addr;

    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, MANY_PAGES * PAGE_BYTES, &addr));
    for (unsigned round = 0; round < 2; round++) {
        assert_ok(peer_publish(tb->engine, 0, MANY_PAGES * PAGE_BYTES, addr));
        for (uint64_t page = 0; page < MANY_PAGES; page++) {
            /* A stride through the range, so that neighbours rarely come at once. */
            uint64_t at = (page * 611) % MANY_PAGES;

            g_assert_cmphex(*(volatile uint32_t *)(window + at * PAGE_BYTES), ==,
                            memory_pattern(at, 0));
        }
        assert_ok(peer_unpublish(tb->engine, 0, MANY_PAGES * PAGE_BYTES));
        g_assert_cmphex(*(volatile uint32_t *)(window + 77 * PAGE_BYTES), ==, VGPU_WINDOW_BLANK);
    }
}

/* One range per page, to the limit. */
typedef struct {
    uint64_t addr;
    uint64_t count;
    uint64_t done;
} ManyCall;

static int call_publish_many(EngineCtx *ctx, void *arg)
{
    ManyCall *call = arg;
    struct vgpu_window_range range = {.argsz = sizeof(range), .size = PAGE_BYTES};
    int ret = 0;

    range.epoch = engine_epoch(ctx);
    for (call->done = 0; !ret && call->done < call->count; call->done++) {
        range.offset = call->done * PAGE_BYTES;
        range.addr = call->addr + (call->done % 64) * PAGE_BYTES;
        ret = engine_ioctl(ctx, VGPU_ENGINE_WINDOW_PUBLISH, &range);
    }
    return ret;
}

static void test_many_ranges(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    ManyCall call = {.count = (128 * MIB) / PAGE_BYTES};

    assert_ok(mdev_attr_set(tb->uuid, "vgpu/window_bytes", "134217728"));
    testbed_advance(tb, TESTBED_AT_GUEST);
    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, SIZE, &call.addr));
    assert_fails(engine_peer_call(tb->engine, call_publish_many, &call, sizeof(call)), ENOSPC);
    g_assert_cmpuint(call.done, >, 1000);
    for (uint64_t page = 0; page < 1000; page += 37)
        assert_window_pattern(tb, page * PAGE_BYTES, page % 64);
    guest_reset(&tb->guest);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/window_published_bytes"), ==, 0);
    assert_window_blank(tb, 0);
}

/* The guest reads everywhere while the engine publishes, unpublishes and unmaps: no signal ever. */
static int call_churn(EngineCtx *ctx, void *arg)
{
    int64_t end = now_ms() + 3000;

    (void)arg;
    while (now_ms() < end) {
        struct vgpu_window_range range = {.argsz = sizeof(range), .size = SIZE};
        int fd = memfd_create("churn", MFD_CLOEXEC);
        void *addr;
        int ret;

        if (ftruncate(fd, SIZE) < 0)
            return -errno;
        addr = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        memset(addr, 0x55, SIZE);
        range.epoch = engine_epoch(ctx);
        range.addr = (uintptr_t)addr;
        ret = engine_ioctl(ctx, VGPU_ENGINE_WINDOW_PUBLISH, &range);
        if (ret)
            return ret;
        g_usleep(500);
        if (end & 1)
            munmap(addr, SIZE);
        else
            fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE);
        range.addr = 0;
        ret = engine_ioctl(ctx, VGPU_ENGINE_WINDOW_UNPUBLISH, &range);
        if (ret)
            return ret;
        munmap(addr, SIZE);
        close(fd);
        end ^= 1;
    }
    return 0;
}

/* A program's writes into a buffer that is gone must not show in another one's place. */
static void test_blank_apart(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    volatile uint8_t *window = testbed_window(tb);
    uint64_t addr;

    memset((void *)window, 0xa5, PAGE_BYTES);
    assert_window_blank(tb, PAGE_BYTES);
    /* Nor must writes from before a publication, or before a reset. */
    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, PAGE_BYTES, &addr));
    assert_ok(peer_publish(tb->engine, 0, PAGE_BYTES, addr));
    assert_window_pattern(tb, 0, 0);
    assert_ok(peer_unpublish(tb->engine, 0, PAGE_BYTES));
    assert_window_blank(tb, 0);
    memset((void *)window, 0xa5, PAGE_BYTES);
    guest_reset(&tb->guest);
    assert_window_blank(tb, 0);
}

static uint64_t available_kb(void)
{
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents("/proc/meminfo", &text, NULL, NULL));
    return g_ascii_strtoull(strstr(text, "MemAvailable:") + strlen("MemAvailable:"), NULL, 10);
}

#define WIDE (256 * MIB)

/* A guest that reads all of an unpublished window costs the host a bounded amount of memory. */
static void test_blank_bounded(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    volatile uint64_t *window;
    uint64_t before, after;
    unsigned kept = 0;

    assert_ok(mdev_attr_set(tb->uuid, "vgpu/window_bytes", "268435456"));
    testbed_advance(tb, TESTBED_AT_GUEST);
    window = vmm_region_mmap(&tb->dev, VFIO_PCI_BAR2_REGION_INDEX, 0, WIDE, PROT_READ | PROT_WRITE);
    g_assert_true(window != MAP_FAILED);
    before = available_kb();
    for (uint64_t at = 0; at < WIDE / 8; at += PAGE_BYTES / 8) {
        g_assert_cmphex(window[at], ==, VGPU_WINDOW_BLANK);
        window[at] = 0x5ec2e70000000000 | at;
    }
    after = available_kb();
    g_test_message("blank pages took %" G_GINT64_FORMAT " KiB", (gint64)before - (gint64)after);
    g_assert_cmpint((gint64)before - (gint64)after, <, 64 * 1024);
    /* Written data may be gone, but never shows at another offset. */
    for (uint64_t at = 0; at < WIDE / 8; at += PAGE_BYTES / 8) {
        uint64_t seen = window[at];

        if (seen != VGPU_WINDOW_BLANK)
            g_assert_cmphex(seen, ==, 0x5ec2e70000000000 | at);
        kept += seen != VGPU_WINDOW_BLANK;
        g_assert_cmphex(window[at + 1], ==, VGPU_WINDOW_BLANK);
    }
    g_test_message("%u of %u pages kept what was written", kept, (unsigned)(WIDE / PAGE_BYTES));
    munmap((void *)window, WIDE);
}

/* A mapping outlives VFIO's descriptors; it must not outlive the VMM's turn. */
static void test_next_vmm(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t *mine = vmm_region_mmap(&tb->dev, VFIO_PCI_BAR2_REGION_INDEX, 0, 2 * PAGE_BYTES,
                                     PROT_READ | PROT_WRITE);
    uint64_t addr;
    int pipe_fd[2];

    g_assert_true(mine != MAP_FAILED);
    g_assert_cmpint(pipe(pipe_fd), ==, 0);
    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, PAGE_BYTES, &addr));
    assert_ok(peer_publish(tb->engine, 0, PAGE_BYTES, addr));
    assert_window_pattern(tb, 0, 0);
    g_assert_cmpint(write(pipe_fd[1], mine, 8), ==, 8);

    /* Between two VMMs it is blank; nobody sees writes of that time. */
    testbed_close_vmm(tb);
    g_assert_cmphex(((volatile uint64_t *)mine)[0], ==, VGPU_WINDOW_BLANK);
    ((volatile uint64_t *)mine)[PAGE_BYTES / 8] = 0x5ec2e7;

    testbed_advance(tb, TESTBED_AT_GUEST);
    assert_ok(peer_publish(tb->engine, 0, PAGE_BYTES, addr));
    assert_window_pattern(tb, 0, 0);
    assert_window_blank(tb, PAGE_BYTES);
    for (unsigned page = 0; page < 2; page++) {
        g_assert_cmpint(write(pipe_fd[1], mine + page * PAGE_BYTES / 8, 8), ==, -1);
        g_assert_cmpint(errno, ==, EFAULT);
    }
    munmap(mine, PAGE_BYTES);
    munmap(mine + PAGE_BYTES / 8, PAGE_BYTES);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    assert_window_pattern(tb, 0, 0);
}

static void test_race(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    volatile uint8_t *window = testbed_window(tb);
    unsigned seen[3] = {0};
    pid_t pid = fork();
    int status = 0;

    if (pid == 0)
        _exit(engine_peer_call(tb->engine, call_churn, NULL, 0) ? 1 : 0);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        for (uint64_t page = 0; page < SIZE / PAGE_BYTES; page++) {
            uint8_t byte = window[page * PAGE_BYTES];

            if (byte != 0x55 && byte != VGPU_WINDOW_BLANK && byte != 0)
                g_error("the window shows 0x%02x, which nobody has written", byte);
            seen[byte == 0x55 ? 0 : byte == VGPU_WINDOW_BLANK ? 1 : 2]++;
        }
    }
    g_assert_cmpint(status, ==, 0);
    g_assert_cmpuint(seen[0], >, 0);
    g_assert_cmpuint(seen[1], >, 0);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/window/memfd", test_memfd);
    driver_test_add("/window/udmabuf", test_udmabuf);
    driver_test_add("/window/pieces", test_pieces);
    driver_test_add("/window/again", test_again);
    driver_test_add("/window/refusals", test_refusals);
    driver_test_add("/window/forbidden", test_forbidden);
    driver_test_add("/window/forbidden-hugetlb", test_forbidden_hugetlb);
    driver_test_add_limit("/window/own-window", test_own_window, 60);
    driver_test_add("/window/early-munmap", test_early_munmap);
    driver_test_add("/window/early-munmap-udmabuf", test_early_munmap_udmabuf);
    driver_test_add("/window/remapped", test_remapped);
    driver_test_add("/window/punch-hole", test_punch_hole);
    driver_test_add("/window/several-mappings", test_several_mappings);
    driver_test_add("/window/no-gup", test_no_gup);
    driver_test_add("/window/thousands", test_thousands);
    driver_test_add_limit("/window/many-ranges", test_many_ranges, 300);
    driver_test_add("/window/come-again", test_come_again);
    driver_test_add("/window/no-memory-there", test_no_memory_there);
    driver_test_add("/window/blank-apart", test_blank_apart);
    driver_test_add("/window/blank-bounded", test_blank_bounded);
    driver_test_add("/window/next-vmm", test_next_vmm);
    driver_test_add("/window/race", test_race);
    return driver_test_run();
}
