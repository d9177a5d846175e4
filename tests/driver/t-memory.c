/* SPDX-License-Identifier: MIT */
/* Guest memory in the engine: MEM_PIN, mmap, and every event that removes it. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/capability.h>
#include <linux/magic.h>

#include "held_mm.h"
#include "kernel_log.h"
#include "testbed.h"

#define AREA (TESTBED_RAM_IOVA + 4 * MIB)

/* Until a call that was to begin when an address space is held waits for that. */
#define IN_CALL_MS 500

static uint8_t *map_area(Testbed *tb, uint64_t iova)
{
    return tb->ram.mem + (iova - tb->ram.iova);
}

static void fill_area(Testbed *tb, uint64_t iova, uint64_t size)
{
    uint32_t *words = (uint32_t *)map_area(tb, iova);

    for (uint64_t i = 0; i < size / 4; i++)
        words[i] = memory_pattern((iova >> 12) + i / 1024, i % 1024);
}

static uint32_t peek_word(Testbed *tb, uint64_t addr)
{
    uint32_t value = 0;

    assert_ok(peer_peek(tb->engine, addr, &value, sizeof(value)));
    return value;
}

static void assert_blank(Testbed *tb, uint64_t addr, uint64_t size)
{
    g_autofree uint8_t *data = g_malloc(size);

    assert_ok(peer_peek(tb->engine, addr, data, size));
    for (uint64_t i = 0; i < size; i++)
        g_assert_cmphex(data[i], ==, 0xff);
}

static int pin_range(Testbed *tb, uint64_t iova, uint64_t size, uint32_t flags, uint64_t *offset,
                     uint64_t *addr)
{
    struct vgpu_mem_entry entry = {.iova = iova, .size = size};

    return peer_pin(tb->engine, &entry, 1, flags, offset, addr);
}

/* What the VMM is charged after the engine has read the new queues, which pins their pages. */
static uint64_t settled_kb(Testbed *tb)
{
    peer_epoch(tb->engine);
    return vmm_charged_kb();
}

static void test_both_ways(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    g_autofree uint8_t *seen = g_malloc(16 * PAGE_BYTES);
    uint64_t offset, addr;
    uint32_t word = 0x12345678;

    fill_area(tb, AREA, 16 * PAGE_BYTES);
    assert_ok(pin_range(tb, AREA, 16 * PAGE_BYTES, VGPU_MEM_WRITE, &offset, &addr));
    assert_ok(peer_peek(tb->engine, addr, seen, 16 * PAGE_BYTES));
    g_assert_cmpmem(seen, 16 * PAGE_BYTES, map_area(tb, AREA), 16 * PAGE_BYTES);

    assert_ok(peer_poke(tb->engine, addr + 5 * PAGE_BYTES + 40, &word, sizeof(word)));
    g_assert_cmpmem(map_area(tb, AREA + 5 * PAGE_BYTES + 40), 4, &word, 4);
    memset(map_area(tb, AREA + 15 * PAGE_BYTES), 0x77, PAGE_BYTES);
    g_assert_cmphex(peek_word(tb, addr + 15 * PAGE_BYTES), ==, 0x77777777);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, 16 * PAGE_BYTES);
}

/* Ranges in any order are mapped one after the other. */
static void test_scattered(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct vgpu_mem_entry entries[40];
    uint64_t at = 0, addr;

    fill_area(tb, AREA, 4 * MIB);
    for (unsigned i = 0; i < G_N_ELEMENTS(entries); i++) {
        entries[i].iova = AREA + ((i * 17ull) % 40) * 16 * PAGE_BYTES;
        entries[i].size = (1 + i % 5) * PAGE_BYTES;
    }
    assert_ok(peer_pin(tb->engine, entries, G_N_ELEMENTS(entries), 0, NULL, &addr));
    for (unsigned i = 0; i < G_N_ELEMENTS(entries); i++) {
        for (uint64_t page = 0; page < entries[i].size; page += PAGE_BYTES, at += PAGE_BYTES)
            g_assert_cmphex(peek_word(tb, addr + at + 8), ==,
                            memory_pattern((entries[i].iova + page) >> 12, 2));
    }
}

typedef struct {
    uint64_t offset;
    uint64_t size;
    int32_t prot;
    int32_t flags;
} MapCall;

static int call_mmap(EngineCtx *ctx, void *arg)
{
    MapCall *call = arg;
    void *addr = mmap(NULL, call->size, call->prot, call->flags, ctx->fd, (off_t)call->offset);

    if (addr == MAP_FAILED)
        return -errno;
    munmap(addr, call->size);
    return 0;
}

static int try_mmap(Testbed *tb, uint64_t offset, uint64_t size, int prot, int flags)
{
    MapCall call = {.offset = offset, .size = size, .prot = prot, .flags = flags};

    return engine_peer_call(tb->engine, call_mmap, &call, sizeof(call));
}

static void test_mmap_rules(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    const int rw = PROT_READ | PROT_WRITE;
    uint64_t offset, addr;

    assert_ok(pin_range(tb, AREA, 4 * PAGE_BYTES, VGPU_MEM_WRITE, &offset, &addr));
    assert_ok(try_mmap(tb, offset, 4 * PAGE_BYTES, rw, MAP_SHARED));
    assert_ok(try_mmap(tb, offset + PAGE_BYTES, PAGE_BYTES, PROT_READ, MAP_SHARED));
    g_assert_cmpint(try_mmap(tb, offset, 5 * PAGE_BYTES, rw, MAP_SHARED), <, 0);
    g_assert_cmpint(try_mmap(tb, offset + 4 * PAGE_BYTES, PAGE_BYTES, rw, MAP_SHARED), <, 0);
    g_assert_cmpint(try_mmap(tb, offset, PAGE_BYTES, rw, MAP_PRIVATE), <, 0);
    g_assert_cmpint(try_mmap(tb, 0, PAGE_BYTES, rw, MAP_SHARED), <, 0);

    assert_ok(pin_range(tb, AREA + MIB, PAGE_BYTES, 0, &offset, &addr));
    assert_ok(try_mmap(tb, offset, PAGE_BYTES, PROT_READ, MAP_SHARED));
    assert_fails(try_mmap(tb, offset, PAGE_BYTES, rw, MAP_SHARED), EACCES);
}

static int call_upgrade(EngineCtx *ctx, void *arg)
{
    uint64_t *addr = arg;

    (void)ctx;
    return mprotect((void *)(uintptr_t)*addr, PAGE_BYTES, PROT_READ | PROT_WRITE) < 0 ? -errno : 0;
}

static void test_no_upgrade(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t offset, addr;

    assert_ok(pin_range(tb, AREA, PAGE_BYTES, 0, &offset, &addr));
    assert_fails(engine_peer_call(tb->engine, call_upgrade, &addr, sizeof(addr)), EACCES);
}

static void test_refusals(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    const uint64_t end = TESTBED_RAM_IOVA + TESTBED_RAM_SIZE;
    struct vgpu_mem_entry none;

    assert_fails(pin_range(tb, AREA + 1, PAGE_BYTES, 0, NULL, NULL), EINVAL);
    assert_fails(pin_range(tb, AREA, 100, 0, NULL, NULL), EINVAL);
    assert_fails(pin_range(tb, AREA, 0, 0, NULL, NULL), EINVAL);
    assert_fails(pin_range(tb, UINT64_MAX & ~0xfffull, 2 * PAGE_BYTES, 0, NULL, NULL), EINVAL);
    assert_fails(pin_range(tb, AREA, PAGE_BYTES, 0x80, NULL, NULL), EINVAL);
    assert_fails(peer_pin(tb->engine, &none, 0, 0, NULL, NULL), EINVAL);
    assert_fails(pin_range(tb, end, PAGE_BYTES, 0, NULL, NULL), EFAULT);
    assert_fails(pin_range(tb, end - PAGE_BYTES, 2 * PAGE_BYTES, 0, NULL, NULL), EFAULT);
    assert_fails(pin_range(tb, 0, PAGE_BYTES, 0, NULL, NULL), EFAULT);
    assert_fails(peer_unpin(tb->engine, 0), ENOENT);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, 0);
    assert_round_trip(tb, 1);
}

/* Memory that the VM lets devices only read cannot be pinned for writing. */
static void test_read_only_dma(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    const uint64_t iova = 0x80000000;
    uint64_t addr;

    assert_ok(vmm_dma_map(&tb->container, map_area(tb, AREA), iova, 16 * PAGE_BYTES,
                          VFIO_DMA_MAP_FLAG_READ));
    assert_fails(pin_range(tb, iova, PAGE_BYTES, VGPU_MEM_WRITE, NULL, NULL), EFAULT);
    fill_area(tb, AREA, PAGE_BYTES);
    assert_ok(pin_range(tb, iova, PAGE_BYTES, 0, NULL, &addr));
    g_assert_cmphex(peek_word(tb, addr), ==, memory_pattern(AREA >> 12, 0));
}

/* The VGPU's limit of pinned memory is its VRAM. */
static void test_limit(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct vgpu_mem_entry entries[5];
    uint64_t offset;

    for (unsigned i = 0; i < G_N_ELEMENTS(entries); i++)
        entries[i] = (struct vgpu_mem_entry){TESTBED_RAM_IOVA, TESTBED_RAM_SIZE};
    assert_fails(peer_pin(tb->engine, entries, 5, 0, NULL, NULL), ENOMEM);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, 0);
    assert_ok(peer_pin(tb->engine, entries, 4, 0, &offset, NULL));
    assert_fails(pin_range(tb, AREA, PAGE_BYTES, 0, NULL, NULL), ENOMEM);
    assert_ok(peer_unpin(tb->engine, offset));
    assert_ok(pin_range(tb, AREA, PAGE_BYTES, 0, NULL, NULL));
}

/* A pin far above the limit costs the kernel nothing: it is refused before memory is made for it.
 */
static void test_limit_is_first(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    const uint64_t most = 1ull << 35; /* 32 GiB: a table of 64 MiB */
    int64_t start = now_ms();

    for (unsigned i = 0; i < 50; i++)
        assert_fails(pin_range(tb, 0, most, 0, NULL, NULL), ENOMEM);
    g_test_message("50 refusals: %" G_GINT64_FORMAT " ms", now_ms() - start);
    g_assert_cmpint(now_ms() - start, <, 1000);
}

static void test_unpin(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t offset, addr, other_offset, other;

    fill_area(tb, AREA, 8 * PAGE_BYTES);
    assert_ok(pin_range(tb, AREA, 8 * PAGE_BYTES, VGPU_MEM_WRITE, &offset, &addr));
    assert_ok(pin_range(tb, AREA, 8 * PAGE_BYTES, VGPU_MEM_WRITE, &other_offset, &other));
    peek_word(tb, addr);
    assert_ok(peer_unpin(tb->engine, offset));
    assert_fails(peer_unpin(tb->engine, offset), ENOENT);
    assert_blank(tb, addr, 8 * PAGE_BYTES);
    /* The same pages by another name stay. */
    g_assert_cmphex(peek_word(tb, other + 4 * PAGE_BYTES), ==, memory_pattern((AREA >> 12) + 4, 0));
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, 8 * PAGE_BYTES);
    /* The engine's writes into removed memory reach nobody. */
    assert_ok(peer_poke(tb->engine, addr, "nobody", 6));
    g_assert_cmphex(*(uint32_t *)map_area(tb, AREA), ==, memory_pattern(AREA >> 12, 0));
}

/* DMA_UNMAP: at once, without a signal, and for good. */
static void test_dma_unmap(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t offset, addr;

    fill_area(tb, AREA, 32 * PAGE_BYTES);
    assert_ok(pin_range(tb, AREA, 32 * PAGE_BYTES, VGPU_MEM_WRITE, &offset, &addr));
    /* Half of it is faulted in, half is not. */
    for (unsigned i = 0; i < 16; i++)
        peek_word(tb, addr + i * PAGE_BYTES);
    assert_ok(vmm_dma_unmap(&tb->container, tb->ram.iova, tb->ram.size));
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, 0);
    assert_blank(tb, addr, 32 * PAGE_BYTES);

    assert_ok(vmm_ram_map(&tb->container, &tb->ram));
    assert_blank(tb, addr, 32 * PAGE_BYTES);
    assert_fails(pin_range(tb, TESTBED_RAM_IOVA + TESTBED_RAM_SIZE, PAGE_BYTES, 0, NULL, NULL),
                 EFAULT);
    assert_ok(pin_range(tb, AREA, 32 * PAGE_BYTES, VGPU_MEM_WRITE, &offset, &addr));
    g_assert_cmphex(peek_word(tb, addr), ==, memory_pattern(AREA >> 12, 0));
    /* The rings are back with the mapping. */
    assert_round_trip(tb, 1);
}

/* Only the unmapped part is removed. */
static void test_dma_unmap_part(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    const uint64_t first = 0x80000000, second = 0x90000000;
    const uint32_t rw = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
    struct vgpu_mem_entry entries[] = {
        {first, 4 * PAGE_BYTES}, {second, 4 * PAGE_BYTES}, {first, 2 * PAGE_BYTES}};
    uint64_t addr;

    fill_area(tb, AREA, 8 * PAGE_BYTES);
    assert_ok(vmm_dma_map(&tb->container, map_area(tb, AREA), first, 4 * PAGE_BYTES, rw));
    assert_ok(vmm_dma_map(&tb->container, map_area(tb, AREA + 4 * PAGE_BYTES), second,
                          4 * PAGE_BYTES, rw));
    assert_ok(peer_pin(tb->engine, entries, 3, VGPU_MEM_WRITE, NULL, &addr));
    assert_ok(vmm_dma_unmap(&tb->container, first, 4 * PAGE_BYTES));
    assert_blank(tb, addr, 4 * PAGE_BYTES);
    assert_blank(tb, addr + 8 * PAGE_BYTES, 2 * PAGE_BYTES);
    for (unsigned i = 4; i < 8; i++)
        g_assert_cmphex(peek_word(tb, addr + i * PAGE_BYTES), ==,
                        memory_pattern((AREA >> 12) + i, 0));
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, 4 * PAGE_BYTES);
    assert_ok(vmm_dma_unmap(&tb->container, second, 4 * PAGE_BYTES));
}

/*
 * Of an entry that takes several calls to pin, across mappings of the VM: what is left of a call is
 * given back with it.
 */
static void test_dma_unmap_pieces(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    const uint64_t iova = 0x80000000, pages[] = {300, 700, 300};
    const uint32_t rw = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
    const uint64_t all = 1300, left[] = {0, 299, 1000, 1299};
    struct vgpu_mem_entry entries[] = {{iova + PAGE_BYTES, 3 * PAGE_BYTES},
                                       {iova, all * PAGE_BYTES}};
    uint64_t at = 0, before = mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), offset, addr;
    uint32_t *ram =
        mmap(NULL, all * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    g_assert_true(ram != MAP_FAILED);
    for (uint32_t i = 0; i < all; i++)
        ram[i * 1024] = i + 1;
    for (unsigned i = 0; i < G_N_ELEMENTS(pages); at += pages[i++])
        assert_ok(vmm_dma_map(&tb->container, ram + at * 1024, iova + at * PAGE_BYTES,
                              pages[i] * PAGE_BYTES, rw));
    assert_ok(peer_pin(tb->engine, entries, 2, VGPU_MEM_WRITE, &offset, &addr));
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==,
                     before + (3 + all) * PAGE_BYTES);
    assert_ok(vmm_dma_unmap(&tb->container, iova + 300 * PAGE_BYTES, 700 * PAGE_BYTES));
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==,
                     before + (3 + 600) * PAGE_BYTES);
    for (unsigned i = 0; i < G_N_ELEMENTS(left); i++)
        g_assert_cmphex(peek_word(tb, addr + (3 + left[i]) * PAGE_BYTES), ==, left[i] + 1);
    assert_blank(tb, addr + (3 + 300) * PAGE_BYTES, 700 * PAGE_BYTES);
    assert_ok(peer_unpin(tb->engine, offset));
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, before);
    assert_ok(vmm_dma_unmap(&tb->container, iova, 300 * PAGE_BYTES));
    assert_ok(vmm_dma_unmap(&tb->container, iova + 1000 * PAGE_BYTES, 300 * PAGE_BYTES));
    munmap(ram, all * PAGE_BYTES);
}

/* Engine and VMM work on it at the same time: the engine never gets a signal. */
static int call_touch(EngineCtx *ctx, void *arg)
{
    volatile uint32_t *word = (volatile uint32_t *)(uintptr_t)*(uint64_t *)arg;
    int64_t end = now_ms() + 300;
    uint32_t sum = 0;

    (void)ctx;
    while (now_ms() < end) {
        for (unsigned i = 0; i < 16; i++)
            sum += word[i * 1024]++;
    }
    return sum == 1 ? -EIO : 0;
}

static void test_unmap_race(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    for (unsigned round = 0; round < 6; round++) {
        uint64_t offset, addr;
        pid_t pid;

        assert_ok(pin_range(tb, AREA, 16 * PAGE_BYTES, VGPU_MEM_WRITE, &offset, &addr));
        pid = fork();
        if (pid == 0)
            _exit(engine_peer_call(tb->engine, call_touch, &addr, sizeof(addr)) ? 1 : 0);
        g_usleep(50000);
        assert_ok(vmm_dma_unmap(&tb->container, tb->ram.iova, tb->ram.size));
        assert_ok(vmm_ram_map(&tb->container, &tb->ram));
        int status;
        waitpid(pid, &status, 0);
        g_assert_cmpint(status, ==, 0);
        assert_ok(peer_unpin(tb->engine, offset));
    }
}

/* Pins count as the VMM's locked memory, unless a physical device has all of it pinned anyway. */
static void test_accounting(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t offset, before = settled_kb(tb);

    assert_ok(pin_range(tb, AREA, 256 * PAGE_BYTES, 0, &offset, NULL));
    g_assert_cmpuint(vmm_charged_kb(), ==, before + 1024);
    assert_ok(peer_unpin(tb->engine, offset));
    g_assert_cmpuint(vmm_charged_kb(), ==, before);
    assert_ok(pin_range(tb, AREA, 256 * PAGE_BYTES, 0, &offset, NULL));
    engine_peer_kill(tb->engine);
    tb->engine = NULL;
    g_assert_true(wait_until(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes") == 0, GUEST_TIMEOUT_MS));
    g_assert_cmpuint(vmm_charged_kb(), <=, before);
}

static int call_unpin_later(EngineCtx *ctx, void *arg)
{
    uint64_t offset = *(uint64_t *)arg;
    struct vgpu_mem_unpin unpin = {
        .argsz = sizeof(unpin), .epoch = engine_epoch(ctx), .offset = offset};

    held_mm_wait();
    return engine_ioctl(ctx, VGPU_ENGINE_MEM_UNPIN, &unpin);
}

/*
 * An engine that is killed while it unpins: the VM gets back all that it has locked. Its address
 * space is held meanwhile, so nothing here may map memory.
 */
static void test_killed_while_unpinning(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t offset, before = settled_kb(tb);
    pthread_t holder;
    pid_t caller;
    int status;

    held_mm_need();
    assert_ok(pin_range(tb, AREA, 256 * PAGE_BYTES, 0, &offset, NULL));
    caller = fork();
    if (caller == 0)
        _exit(engine_peer_call(tb->engine, call_unpin_later, &offset, sizeof(offset)) != -EPIPE);
    g_assert_cmpint(pthread_create(&holder, NULL, held_mm_long_thread, NULL), ==, 0);
    held_mm_wait();
    g_usleep(IN_CALL_MS * 1000);
    kill(tb->engine->pid, SIGKILL);
    held_mm_let_go();
    pthread_join(holder, NULL);
    g_assert_cmpint(waitpid(caller, &status, 0), ==, caller);
    /* iommufd needs no lock of the address space for that, so the call ends before the engine. */
    if (!vmm_by_iommufd())
        g_assert_cmpint(status, ==, 0);
    engine_peer_kill(tb->engine);
    tb->engine = NULL;
    g_assert_true(wait_until(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes") == 0, GUEST_TIMEOUT_MS));
    g_assert_cmpuint(vmm_charged_kb(), <=, before);
}

static void drop_ipc_lock(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    g_assert_cmpint(syscall(SYS_capget, &header, data), ==, 0);
    data[0].effective &= ~(1u << CAP_IPC_LOCK);
    g_assert_cmpint(syscall(SYS_capset, &header, data), ==, 0);
}

static void test_memlock_limit(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_ENGINE);
    struct rlimit limit = {.rlim_cur = MIB, .rlim_max = MIB};
    uint64_t before;

    /* Not while the container is charged for pages: VFIO asks at DMA_MAP. */
    drop_ipc_lock();
    g_assert_cmpint(setrlimit(RLIMIT_MEMLOCK, &limit), ==, 0);
    testbed_advance(tb, TESTBED_AT_GUEST);
    before = settled_kb(tb);
    assert_fails(pin_range(tb, AREA, 2 * MIB, 0, NULL, NULL), ENOMEM);
    g_assert_cmpuint(vmm_charged_kb(), ==, before);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, 0);
    assert_ok(pin_range(tb, AREA, MIB / 2, 0, NULL, NULL));
    assert_round_trip(tb, 1);
}

/* Pins of an epoch end with it. */
static void test_reset_takes_all(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t offset, addr;

    fill_area(tb, AREA, 8 * PAGE_BYTES);
    assert_ok(pin_range(tb, AREA, 8 * PAGE_BYTES, VGPU_MEM_WRITE, &offset, &addr));
    peek_word(tb, addr);
    guest_reset(&tb->guest);
    assert_blank(tb, addr, 8 * PAGE_BYTES);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, 0);
    assert_fails(peer_unpin(tb->engine, offset), ENOENT);
}

/*
 * An engine's writes into memory that a VM has taken away must not reach the next VM, nor the next
 * life of this one: neither through a new mapping, nor if they come through an old one.
 */
static void test_blank_of_next(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t offset, old, next;

    for (unsigned round = 0; round < 4; round++) {
        assert_ok(pin_range(tb, AREA, PAGE_BYTES, VGPU_MEM_WRITE, &offset, &old));
        assert_ok(peer_unpin(tb->engine, offset));
        assert_blank(tb, old, PAGE_BYTES);
        assert_ok(peer_poke(tb->engine, old, "a secret of the first VM", 24));
        if (round % 2) {
            guest_up(&tb->guest, GUEST_FEATURES);
        } else {
            testbed_close_vmm(tb);
            testbed_advance(tb, TESTBED_AT_GUEST);
        }
        assert_ok(pin_range(tb, AREA, PAGE_BYTES, VGPU_MEM_WRITE, &offset, &next));
        assert_ok(peer_unpin(tb->engine, offset));
        assert_blank(tb, next, PAGE_BYTES);
        assert_ok(peer_poke(tb->engine, old, "written late, by the old mapping", 32));
        assert_blank(tb, next, PAGE_BYTES);
    }
}

/* Several hundred objects at once, freed in another order. */
static void test_many(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t offsets[300];

    for (unsigned i = 0; i < G_N_ELEMENTS(offsets); i++)
        assert_ok(
            pin_range(tb, AREA + (i % 64) * PAGE_BYTES, 4 * PAGE_BYTES, 0, &offsets[i], NULL));
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==,
                     G_N_ELEMENTS(offsets) * 4 * PAGE_BYTES);
    for (unsigned i = 0; i < G_N_ELEMENTS(offsets); i++)
        assert_ok(peer_unpin(tb->engine, offsets[(i * 7) % G_N_ELEMENTS(offsets)]));
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, 0);
}

/* As many as the VRAM allows of one page each. */
#define CROWD       16000
#define CROWD_TRIES 200
/* Mapping is slower among many objects only by the depth of a tree. */
#define CROWD_RATIO 5

typedef struct {
    uint64_t count;
    uint64_t offset; /* of the first object */
} CrowdCall;

static int call_crowd(EngineCtx *ctx, void *arg)
{
    CrowdCall *call = arg;
    struct vgpu_mem_entry entry = {AREA, PAGE_BYTES};
    uint64_t epoch = engine_epoch(ctx);

    for (uint64_t i = 0; i < call->count; i++) {
        struct vgpu_mem_pin pin = {
            .argsz = sizeof(pin), .epoch = epoch, .nentries = 1, .entries = (uintptr_t)&entry};
        int ret = engine_ioctl(ctx, VGPU_ENGINE_MEM_PIN, &pin);

        if (ret)
            return ret;
        if (!i)
            call->offset = pin.offset;
    }
    return 0;
}

typedef struct {
    uint64_t offset;
    int64_t best_ns;
} TouchCall;

static int64_t thread_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* The shortest of many times of processor for mapping and touching an object. */
static int call_touch_often(EngineCtx *ctx, void *arg)
{
    TouchCall *call = arg;

    call->best_ns = INT64_MAX;
    for (unsigned i = 0; i < CROWD_TRIES; i++) {
        int64_t start = thread_ns();
        volatile uint32_t *word =
            mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, ctx->fd, (off_t)call->offset);

        if (word == MAP_FAILED)
            return -errno;
        (void)*word;
        call->best_ns = MIN(call->best_ns, thread_ns() - start);
        munmap((void *)word, PAGE_BYTES);
    }
    return 0;
}

static int64_t time_to_touch(Testbed *tb, uint64_t offset)
{
    TouchCall call = {.offset = offset};

    assert_ok(engine_peer_call(tb->engine, call_touch_often, &call, sizeof(call)));
    return call.best_ns;
}

/* Faults look objects up under a lock that other tenants' memory waits for. */
static void test_crowd(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    CrowdCall first = {.count = 1}, others = {.count = CROWD};
    int64_t alone, among_many;

    assert_ok(engine_peer_call(tb->engine, call_crowd, &first, sizeof(first)));
    alone = time_to_touch(tb, first.offset);
    assert_ok(engine_peer_call(tb->engine, call_crowd, &others, sizeof(others)));
    among_many = time_to_touch(tb, first.offset);
    g_test_message("%u ns alone, %u ns among %u", (unsigned)alone, (unsigned)among_many, CROWD);
    g_assert_cmpint(among_many, <, CROWD_RATIO * alone);
}

/* A file on a disk as the VM's memory, mapped in place of the guest's. */
static void back_with_file(Testbed *tb)
{
    struct statfs fs;
    int fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
        driver_test_skip("/var/tmp is no file system on a disk");
    g_assert_cmpint(ftruncate(fd, TESTBED_RAM_SIZE), ==, 0);
    g_assert_true(mmap(tb->ram.mem, tb->ram.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                       fd, 0) == tb->ram.mem);
    close(fd);
}

/* The records since kernel_log_open(). */
static char *log_since(int fd)
{
    g_autoptr(GString) log = g_string_new(NULL);
    char record[8192];
    ssize_t n;

    while ((n = read(fd, record, sizeof(record))) > 0)
        g_string_append_len(log, record, n);
    close(fd);
    return g_string_free(g_steal_pointer(&log), FALSE);
}

static int call_pop_again(EngineCtx *ctx, void *arg)
{
    struct vgpu_queue_request request = {0};
    char buf[256];

    (void)arg;
    return engine_pop(ctx, VGPU_QUEUE_CONTROL, engine_epoch(ctx), buf, sizeof(buf), &request);
}

/* The kernel does not pin such memory. The message says so, once a queue, and does not blame the
 * guest. */
static void test_file_on_disk(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_OPEN);
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    g_autofree char *log = NULL;
    struct utsname kernel;
    const char *said;
    void *resp;
    int fd;

    g_assert_cmpint(uname(&kernel), ==, 0);
    if (g_str_has_prefix(kernel.release, "6.1."))
        driver_test_skip("this kernel still pins files");
    back_with_file(tb);
    fd = kernel_log_open();
    assert_ok(fd);
    testbed_advance(tb, TESTBED_AT_GUEST);
    guest_submit(&tb->guest, VGPU_QUEUE_CONTROL, &req, sizeof(req), sizeof(req), &resp);
    g_assert_true(
        wait_until(guest_status(&tb->guest) & VIRTIO_CONFIG_S_NEEDS_RESET, GUEST_TIMEOUT_MS));
    assert_fails(engine_peer_call(tb->engine, call_pop_again, NULL, 0), EPROTO);
    log = log_since(fd);
    said = strstr(log, "cannot pin guest memory for queue 0");
    g_assert_nonnull(said);
    g_assert_null(strstr(said + 1, "cannot pin guest memory for queue 0"));
    g_assert_nonnull(strstr(said, "file on disk"));
    g_assert_null(strstr(log, "the guest broke"));
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/memory/both-ways", test_both_ways);
    driver_test_add("/memory/scattered", test_scattered);
    driver_test_add("/memory/mmap-rules", test_mmap_rules);
    driver_test_add("/memory/no-upgrade", test_no_upgrade);
    driver_test_add("/memory/refusals", test_refusals);
    driver_test_add("/memory/read-only-dma", test_read_only_dma);
    driver_test_add("/memory/limit", test_limit);
    driver_test_add("/memory/limit-is-first", test_limit_is_first);
    driver_test_add("/memory/unpin", test_unpin);
    driver_test_add("/memory/dma-unmap", test_dma_unmap);
    driver_test_add("/memory/dma-unmap-part", test_dma_unmap_part);
    driver_test_add("/memory/dma-unmap-pieces", test_dma_unmap_pieces);
    driver_test_add("/memory/unmap-race", test_unmap_race);
    driver_test_add("/memory/accounting", test_accounting);
    driver_test_add("/memory/killed-while-unpinning", test_killed_while_unpinning);
    driver_test_add("/memory/memlock-limit", test_memlock_limit);
    driver_test_add("/memory/reset-takes-all", test_reset_takes_all);
    driver_test_add("/memory/blank-of-next", test_blank_of_next);
    driver_test_add("/memory/many", test_many);
    driver_test_add("/memory/crowd", test_crowd);
    driver_test_add("/memory/file-on-disk", test_file_on_disk);
    return driver_test_run();
}
