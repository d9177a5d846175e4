/* SPDX-License-Identifier: MIT */
/*
 * Guest memory for other drivers to pin: MEM_EXPORT, mappings of its file, and every event that
 * takes pages out of them. What pins pages as a GPU's driver does is here vmsplice(), into a pipe.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "testbed.h"

#define AREA    (TESTBED_RAM_IOVA + 4 * MIB)
#define ENTRIES 32
#define ROUNDS  300
#define NOTHING (~0ull)
#define RW      (PROT_READ | PROT_WRITE)

static Testbed *new_testbed(TestbedStage stage)
{
    Testbed *tb = testbed_new(TESTBED_AT_GPU);
    struct vgpu_type_desc type = mdev_type(TESTBED_TYPE, TESTBED_VRAM, TESTBED_WINDOW);

    type.cuda = 1;
    assert_ok(mdev_gpu_set_types(TESTBED_GPU, TESTBED_GPU_VRAM, &type, 1));
    testbed_advance(tb, stage);
    return tb;
}

static uint8_t *area(Testbed *tb, uint64_t iova)
{
    return tb->ram.mem + (iova - tb->ram.iova);
}

/* ---- in the engine ---- */

typedef struct {
    struct vgpu_mem_pin pin;
    struct vgpu_mem_entry entries[ENTRIES];
    struct vgpu_mem_export export;
    uint64_t addr;
    uint32_t pieces;
} ExportCall;

/* As many mappings as the memory has pieces, one behind the other. */
static int map_pieces(ExportCall *call)
{
    uint8_t *at = mmap(NULL, call->pin.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t from, to;

    if (at == MAP_FAILED)
        return -errno;
    call->addr = (uintptr_t)at;
    call->pieces = 0;
    for (from = 0; from < call->pin.size; from = to, call->pieces++) {
        off_t end = lseek(call->export.fd, (off_t)from, SEEK_HOLE);

        if (end < 0)
            return -errno;
        to = (uint64_t)end;
        if (mmap(at + from, to - from, RW, MAP_SHARED | MAP_FIXED, call->export.fd, (off_t)from) ==
            MAP_FAILED)
            return -errno;
    }
    return from == call->pin.size ? 0 : -EBADMSG;
}

static int call_export(EngineCtx *ctx, void *arg)
{
    ExportCall *call = arg;
    int ret;

    call->export.epoch = call->pin.epoch = engine_epoch(ctx);
    call->pin.entries = (uintptr_t)call->entries;
    ret = engine_ioctl(ctx, VGPU_ENGINE_MEM_PIN, &call->pin);
    if (ret)
        return ret;
    call->export.offset = call->pin.offset;
    ret = engine_ioctl(ctx, VGPU_ENGINE_MEM_EXPORT, &call->export);
    return ret ? ret : map_pieces(call);
}

static int export_entries(Testbed *tb, const struct vgpu_mem_entry *entries, unsigned count,
                          uint32_t flags, ExportCall *call)
{
    *call = (ExportCall){
        .pin = {.argsz = sizeof(call->pin), .flags = flags, .nentries = count},
        .export = {.argsz = sizeof(call->export), .fd = -1},
    };
    memcpy(call->entries, entries, count * sizeof(*entries));
    return engine_peer_call(tb->engine, call_export, call, sizeof(*call));
}

static int export(Testbed *tb, uint64_t iova, uint64_t size, ExportCall *call)
{
    const struct vgpu_mem_entry entry = {iova, size};

    return export_entries(tb, &entry, 1, VGPU_MEM_WRITE, call);
}

typedef struct {
    uint64_t addr;
    uint64_t word;
    int32_t pipe[2];
} ReadCall;

/* EFAULT where a program would get SIGBUS. */
static int call_read(EngineCtx *ctx, void *arg)
{
    ReadCall *call = arg;
    int ends[2], ret = 0;

    (void)ctx;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    if (write(ends[1], (void *)(uintptr_t)call->addr, sizeof(call->word)) < 0)
        ret = -errno;
    else if (read(ends[0], &call->word, sizeof(call->word)) != sizeof(call->word))
        ret = -EIO;
    close(ends[0]);
    close(ends[1]);
    return ret;
}

/* What is there; or NOTHING. */
static uint64_t look(Testbed *tb, uint64_t addr)
{
    ReadCall call = {.addr = addr};
    int ret = engine_peer_call(tb->engine, call_read, &call, sizeof(call));

    if (ret == -EFAULT)
        return NOTHING;
    assert_ok(ret);
    return call.word;
}

static int call_hold(EngineCtx *ctx, void *arg)
{
    ReadCall *call = arg;
    const struct iovec page = {(void *)(uintptr_t)call->addr, PAGE_BYTES};

    (void)ctx;
    if (pipe2(call->pipe, O_CLOEXEC) < 0)
        return -errno;
    return vmsplice(call->pipe[1], &page, 1, 0) == (ssize_t)PAGE_BYTES ? 0 : -errno;
}

static int call_held(EngineCtx *ctx, void *arg)
{
    ReadCall *call = arg;

    (void)ctx;
    if (read(call->pipe[0], &call->word, sizeof(call->word)) != sizeof(call->word))
        return -EIO;
    close(call->pipe[0]);
    close(call->pipe[1]);
    return 0;
}

/* A page is pinned; held() then reads its first word, and gives it back. */
static int hold(Testbed *tb, uint64_t addr, ReadCall *call)
{
    *call = (ReadCall){.addr = addr};
    return engine_peer_call(tb->engine, call_hold, call, sizeof(*call));
}

static uint64_t held(Testbed *tb, ReadCall *call)
{
    assert_ok(engine_peer_call(tb->engine, call_held, call, sizeof(*call)));
    return call->word;
}

static int call_close(EngineCtx *ctx, void *arg)
{
    const ExportCall *call = arg;

    (void)ctx;
    munmap((void *)(uintptr_t)call->addr, call->pin.size);
    return close(call->export.fd) < 0 ? -errno : 0;
}

static int end_export(Testbed *tb, ExportCall *call)
{
    return engine_peer_call(tb->engine, call_close, call, sizeof(*call));
}

/* What fcntl() says of the seals of a memfd; by a file of another's memory nobody reads or sets
 * them. */
static int call_seals(EngineCtx *ctx, void *arg)
{
    const ExportCall *call = arg;

    (void)ctx;
    if (fcntl(call->export.fd, F_GET_SEALS) >= 0 || errno != EINVAL)
        return -EBADMSG;
    if (fcntl(call->export.fd, F_ADD_SEALS, F_SEAL_SEAL) >= 0 || errno != EINVAL)
        return -EBADE;
    return 0;
}

/* What else the kernel does with a file that is not mapped. */
static int call_misuse(EngineCtx *ctx, void *arg)
{
    const ExportCall *call = arg;
    void *at = (void *)(uintptr_t)call->addr;
    int fd = call->export.fd;
    char byte = 0;

    (void)ctx;
    if (ftruncate(fd, 0) >= 0 || fallocate(fd, 0, 0, PAGE_BYTES) >= 0)
        return -EBADMSG;
    if (pread(fd, &byte, 1, 0) >= 0 || pwrite(fd, &byte, 1, 0) >= 0)
        return -EBADE;
    if (madvise(at, PAGE_BYTES, MADV_REMOVE) >= 0)
        return -EBADFD;
    return 0;
}

/* Reads the engine's list of mappings with what the kernel counts for each. */
static int call_list_mappings(EngineCtx *ctx, void *arg)
{
    const ExportCall *call = arg;
    g_autofree char *text = NULL, *line = NULL;
    g_autofree char *named = g_strdup_printf("%" PRIx64 "-", call->addr);
    const char *at;

    (void)ctx;
    if (!g_file_get_contents("/proc/self/smaps", &text, NULL, NULL))
        return -EIO;
    at = strstr(text, named);
    line = at ? g_strndup(at, strcspn(at, "\n")) : NULL;
    return line && strstr(line, "vgpu-memory") ? 0 : -ENOENT;
}

/* ---- the tests ---- */

/* Each page of guest memory begins with its number. */
static void number_pages(Testbed *tb)
{
    for (uint64_t at = 0; at < tb->ram.size; at += PAGE_BYTES)
        *(uint64_t *)(tb->ram.mem + at) = at / PAGE_BYTES;
}

static uint64_t number_at(uint64_t iova)
{
    return (iova - TESTBED_RAM_IOVA) / PAGE_BYTES;
}

static void test_both_ways(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    const uint64_t word = 0x123456789abcdefull;
    ExportCall call;

    *(uint64_t *)area(tb, AREA + 3 * PAGE_BYTES) = 4711;
    assert_ok(export(tb, AREA, MIB, &call));
    g_assert_cmpuint(call.pieces, ==, 1);
    g_assert_cmpuint(look(tb, call.addr + 3 * PAGE_BYTES), ==, 4711);
    assert_ok(peer_poke(tb->engine, call.addr + 5 * PAGE_BYTES + 8, &word, sizeof(word)));
    g_assert_cmpuint(*(uint64_t *)area(tb, AREA + 5 * PAGE_BYTES + 8), ==, word);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, MIB);
    assert_ok(end_export(tb, &call));
    assert_ok(peer_unpin(tb->engine, call.pin.offset));
    g_assert_cmpuint(*(uint64_t *)area(tb, AREA + 5 * PAGE_BYTES + 8), ==, word);
    assert_round_trip(tb, 1);
}

/* In any order, some of them twice, some over others. */
static void test_scattered(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    struct vgpu_mem_entry entries[ENTRIES];
    uint64_t at = 0;
    ExportCall call;

    number_pages(tb);
    for (unsigned i = 0; i < ENTRIES; i++)
        entries[i] =
            (struct vgpu_mem_entry){AREA + (i * 7 % 16) * 2 * PAGE_BYTES, (1 + i % 3) * PAGE_BYTES};
    assert_ok(export_entries(tb, entries, ENTRIES, VGPU_MEM_WRITE, &call));
    g_assert_cmpuint(call.pieces, ==, ENTRIES);
    for (unsigned i = 0; i < ENTRIES; i++)
        for (uint64_t page = 0; page < entries[i].size; page += PAGE_BYTES, at += PAGE_BYTES)
            g_assert_cmpuint(look(tb, call.addr + at), ==, number_at(entries[i].iova + page));
}

/* Two ranges that lie one behind the other are one piece. */
static void test_joined(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    const struct vgpu_mem_entry entries[] = {{AREA, PAGE_BYTES}, {AREA + PAGE_BYTES, PAGE_BYTES}};
    ExportCall call;

    assert_ok(export_entries(tb, entries, 2, VGPU_MEM_WRITE, &call));
    g_assert_cmpuint(call.pieces, ==, 1);
}

/* The engine's own mapping cannot be pinned, which is why there are exports. */
static void test_pinned_by_others(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    uint64_t *word = (uint64_t *)area(tb, AREA + PAGE_BYTES);
    const struct vgpu_mem_entry entry = {AREA, MIB};
    ExportCall call;
    ReadCall page;
    uint64_t own;

    assert_ok(peer_pin(tb->engine, &entry, 1, VGPU_MEM_WRITE, NULL, &own));
    assert_fails(hold(tb, own, &page), EFAULT);
    assert_ok(export(tb, AREA, MIB, &call));
    assert_ok(hold(tb, call.addr + PAGE_BYTES, &page));
    *word = 77;
    g_assert_cmpuint(held(tb, &page), ==, 77);
}

typedef struct {
    struct vgpu_mem_export export;
} RawCall;

static int call_raw(EngineCtx *ctx, void *arg)
{
    RawCall *call = arg;

    call->export.epoch += engine_epoch(ctx);
    return engine_ioctl(ctx, VGPU_ENGINE_MEM_EXPORT, &call->export);
}

static int try_raw(Testbed *tb, struct vgpu_mem_export export)
{
    RawCall call = {export};

    return engine_peer_call(tb->engine, call_raw, &call, sizeof(call));
}

static void test_refusals(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    const struct vgpu_mem_entry entry = {AREA, 4 * PAGE_BYTES};
    struct vgpu_mem_export good = {.argsz = sizeof(good)}, bad;
    ExportCall call;

    assert_ok(peer_pin(tb->engine, &entry, 1, VGPU_MEM_WRITE, (uint64_t *)&good.offset, NULL));
    bad = good;
    bad.argsz--;
    assert_fails(try_raw(tb, bad), EINVAL);
    bad = good;
    bad.flags = 1;
    assert_fails(try_raw(tb, bad), EINVAL);
    bad = good;
    bad.reserved = 1;
    assert_fails(try_raw(tb, bad), EINVAL);
    bad = good;
    bad.epoch = 1;
    assert_fails(try_raw(tb, bad), ESTALE);
    bad = good;
    bad.offset += PAGE_BYTES;
    assert_fails(try_raw(tb, bad), ENOENT);
    bad.offset = 0;
    assert_fails(try_raw(tb, bad), ENOENT);
    assert_fails(export_entries(tb, &entry, 1, 0, &call), ENOENT);
    assert_ok(try_raw(tb, good));
    assert_fails(try_raw(tb, good), EBUSY);
    assert_ok(peer_unpin(tb->engine, good.offset));
    assert_fails(try_raw(tb, good), ENOENT);
}

/* vGPUs whose type has no CUDA have no program that could use it. */
static void test_without_cuda(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    ExportCall call;

    assert_fails(export(tb, AREA, PAGE_BYTES, &call), EOPNOTSUPP);
}

#define SWITCH "/sys/module/mdev_vgpu/parameters/guest_memory"

/* An administrator can turn it off. */
static void test_turned_off(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    struct vgpu_engine_info info;
    ExportCall call;

    assert_ok(peer_info(tb->engine, &info));
    g_assert_true(info.features & VGPU_FEATURE_EXPORT);
    assert_ok(sysfs_write(SWITCH, "0"));
    assert_ok(peer_info(tb->engine, &info));
    g_assert_false(info.features & VGPU_FEATURE_EXPORT);
    assert_fails(export(tb, AREA, PAGE_BYTES, &call), EOPNOTSUPP);
    assert_ok(sysfs_write(SWITCH, "1"));
    assert_ok(export(tb, AREA, PAGE_BYTES, &call));
}

/* The VM has another kind of memory at AREA. */
static void replace_area(Testbed *tb, int fd, int flags)
{
    assert_ok(vmm_dma_unmap(&tb->container, tb->ram.iova, tb->ram.size));
    g_assert_true(mmap(area(tb, AREA), 2 * MIB, RW, flags | MAP_FIXED | MAP_POPULATE, fd, 0) !=
                  MAP_FAILED);
    assert_ok(vmm_ram_map(&tb->container, &tb->ram));
}

static void test_anonymous_memory(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    ExportCall call;

    replace_area(tb, -1, MAP_PRIVATE | MAP_ANONYMOUS);
    assert_fails(export(tb, AREA, MIB, &call), EOPNOTSUPP);
    assert_ok(export(tb, AREA + 4 * MIB, MIB, &call));
}

/* What could not be exported is not lent: for that the device would be reset. */
static void test_nothing_lent(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    ExportCall call;

    replace_area(tb, -1, MAP_PRIVATE | MAP_ANONYMOUS);
    assert_fails(export(tb, AREA, MIB, &call), EOPNOTSUPP);
    vmm_config_write(&tb->dev, PCI_COMMAND, PCI_COMMAND_MEMORY, 2);
    g_assert_cmpuint(atomic_load(&tb->engine->state->resets), ==, 0);
    g_assert_cmpuint(guest_status(&tb->guest), !=, 0);
}

static void test_private_memory(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    int fd = memfd_create("private", MFD_CLOEXEC);
    ExportCall call;

    g_assert_cmpint(ftruncate(fd, 2 * MIB), ==, 0);
    replace_area(tb, fd, MAP_PRIVATE);
    close(fd);
    assert_fails(export(tb, AREA, MIB, &call), EOPNOTSUPP);
}

static void test_huge_pages(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_OPEN);
    uint64_t iova = AREA + (-(uintptr_t)area(tb, AREA) & (2 * MIB - 1));
    int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
    ExportCall call;

    assert_ok(sysfs_write("/proc/sys/vm/nr_hugepages", "4"));
    g_assert_cmpint(ftruncate(fd, 2 * MIB), ==, 0);
    if (mmap(area(tb, iova), 2 * MIB, RW, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
        driver_test_skip("no huge page is to be had");
    close(fd);
    testbed_advance(tb, TESTBED_AT_GUEST);
    assert_fails(export(tb, iova, MIB, &call), EOPNOTSUPP);
    sysfs_write("/proc/sys/vm/nr_hugepages", "0");
}

/* A VM with several parts of memory: what lies in two is not exported. */
static void test_two_files(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    const uint64_t end = AREA + 2 * MIB;
    int fd = memfd_create("other", MFD_CLOEXEC);
    ExportCall call;

    g_assert_cmpint(ftruncate(fd, 2 * MIB), ==, 0);
    replace_area(tb, fd, MAP_SHARED);
    close(fd);
    assert_ok(export(tb, AREA, 2 * MIB, &call));
    assert_ok(export(tb, end, MIB, &call));
    assert_fails(export(tb, end - PAGE_BYTES, 2 * PAGE_BYTES, &call), EOPNOTSUPP);
}

typedef struct {
    int32_t fd;
    int32_t flags;
    uint64_t offset;
    uint64_t size;
    uint64_t addr;
} MapCall;

static int call_mmap(EngineCtx *ctx, void *arg)
{
    const MapCall *call = arg;
    void *addr = mmap(NULL, call->size, RW, call->flags, call->fd, (off_t)call->offset);

    (void)ctx;
    if (addr == MAP_FAILED)
        return -errno;
    munmap(addr, call->size);
    return 0;
}

/* Neither a longer mapping, nor one of another place. */
static int call_stretch(EngineCtx *ctx, void *arg)
{
    const MapCall *call = arg;
    void *at = (void *)(uintptr_t)call->addr;

    (void)ctx;
    if (mremap(at, PAGE_BYTES, 2 * PAGE_BYTES, MREMAP_MAYMOVE) != MAP_FAILED)
        return -EBADMSG;
    if (remap_file_pages(at, PAGE_BYTES, 0, 100, 0) == 0)
        return -EBADE;
    return 0;
}

static void test_mmap_rules(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    const struct vgpu_mem_entry entries[] = {{AREA, 2 * PAGE_BYTES}, {AREA + MIB, 2 * PAGE_BYTES}};
    ExportCall call;
    MapCall map;

    assert_ok(export_entries(tb, entries, 2, VGPU_MEM_WRITE, &call));
    map = (MapCall){call.export.fd, MAP_SHARED, 0, 2 * PAGE_BYTES, call.addr};
    assert_ok(engine_peer_call(tb->engine, call_mmap, &map, sizeof(map)));
    map.size = 3 * PAGE_BYTES;
    assert_fails(engine_peer_call(tb->engine, call_mmap, &map, sizeof(map)), EINVAL);
    map.offset = 3 * PAGE_BYTES;
    map.size = 2 * PAGE_BYTES;
    assert_fails(engine_peer_call(tb->engine, call_mmap, &map, sizeof(map)), EINVAL);
    map.offset = 4 * PAGE_BYTES;
    map.size = PAGE_BYTES;
    assert_fails(engine_peer_call(tb->engine, call_mmap, &map, sizeof(map)), EINVAL);
    map.offset = 0;
    map.flags = MAP_PRIVATE;
    assert_fails(engine_peer_call(tb->engine, call_mmap, &map, sizeof(map)), EINVAL);
    assert_ok(engine_peer_call(tb->engine, call_stretch, &map, sizeof(map)));
}

/* A program that has it can do nothing else to the VM's memory, or to the kernel's. */
static void test_seals(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    ExportCall call;

    number_pages(tb);
    assert_ok(export(tb, AREA, MIB, &call));
    assert_ok(engine_peer_call(tb->engine, call_seals, &call, sizeof(call)));
    assert_ok(engine_peer_call(tb->engine, call_misuse, &call, sizeof(call)));
    g_assert_cmpuint(look(tb, call.addr), ==, number_at(AREA));
    g_assert_cmpint(fcntl(tb->ram.memfd, F_GET_SEALS), ==, F_SEAL_SEAL);
}

static void test_listed(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    ExportCall call;

    assert_ok(export(tb, AREA, MIB, &call));
    assert_ok(engine_peer_call(tb->engine, call_list_mappings, &call, sizeof(call)));
}

static int call_close_file(EngineCtx *ctx, void *arg)
{
    const ExportCall *call = arg;

    (void)ctx;
    return close(call->export.fd) < 0 ? -errno : 0;
}

/* A mapping stays what it is without the file. */
static void test_closed(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    ExportCall call;

    number_pages(tb);
    assert_ok(export(tb, AREA, MIB, &call));
    assert_ok(engine_peer_call(tb->engine, call_close_file, &call, sizeof(call)));
    g_assert_cmpuint(look(tb, call.addr), ==, number_at(AREA));
    assert_ok(peer_unpin(tb->engine, call.pin.offset));
    g_assert_cmpuint(look(tb, call.addr), ==, NOTHING);
    g_assert_cmpuint(look(tb, call.addr + PAGE_BYTES), ==, NOTHING);
}

static void test_unpin(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    ExportCall call;

    number_pages(tb);
    assert_ok(export(tb, AREA, MIB, &call));
    g_assert_cmpuint(look(tb, call.addr), ==, number_at(AREA));
    assert_ok(peer_unpin(tb->engine, call.pin.offset));
    g_assert_cmpuint(look(tb, call.addr), ==, NOTHING);
    g_assert_cmpuint(look(tb, call.addr + PAGE_BYTES), ==, NOTHING);
    g_assert_cmpuint(*(uint64_t *)area(tb, AREA), ==, number_at(AREA));
}

/* What the VM takes away is gone at once, and the rest stays; what is pinned by others stays
 * theirs. */
static void test_dma_unmap(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    ExportCall call;
    ReadCall page;

    number_pages(tb);
    assert_ok(export(tb, AREA, MIB, &call));
    g_assert_cmpuint(look(tb, call.addr), ==, number_at(AREA));
    assert_ok(hold(tb, call.addr + PAGE_BYTES, &page));
    assert_ok(vmm_dma_unmap(&tb->container, tb->ram.iova, tb->ram.size));
    g_assert_cmpuint(look(tb, call.addr), ==, NOTHING);
    g_assert_cmpuint(look(tb, call.addr + 2 * PAGE_BYTES), ==, NOTHING);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, 0);
    assert_ok(vmm_ram_map(&tb->container, &tb->ram));
    g_assert_cmpuint(look(tb, call.addr), ==, NOTHING);
    g_assert_cmpuint(held(tb, &page), ==, number_at(AREA + PAGE_BYTES));
    assert_ok(export(tb, AREA, MIB, &call));
    g_assert_cmpuint(look(tb, call.addr), ==, number_at(AREA));
    assert_round_trip(tb, 1);
}

static void test_reset(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    ExportCall call;

    number_pages(tb);
    assert_ok(export(tb, AREA, MIB, &call));
    g_assert_cmpuint(look(tb, call.addr), ==, number_at(AREA));
    guest_reset(&tb->guest);
    g_assert_cmpuint(look(tb, call.addr), ==, NOTHING);
    guest_up(&tb->guest, GUEST_FEATURES);
    g_assert_cmpuint(look(tb, call.addr), ==, NOTHING);
}

static void punch_hole(Testbed *tb, uint64_t iova, uint64_t size)
{
    g_assert_cmpint(fallocate(tb->ram.memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                              (off_t)(iova - tb->ram.iova), (off_t)size),
                    ==, 0);
}

/* The VMM takes pages out of its file while they are mapped. The kernel's log would say it if one
 * stayed. */
static void test_hole(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    ExportCall call;
    ReadCall page;

    number_pages(tb);
    assert_ok(export(tb, AREA, MIB, &call));
    g_assert_cmpuint(look(tb, call.addr), ==, number_at(AREA));
    g_assert_cmpuint(look(tb, call.addr + 8 * PAGE_BYTES), ==, number_at(AREA + 8 * PAGE_BYTES));
    assert_ok(hold(tb, call.addr + PAGE_BYTES, &page));
    punch_hole(tb, AREA, 4 * PAGE_BYTES);
    g_assert_cmpuint(look(tb, call.addr), ==, NOTHING);
    g_assert_cmpuint(look(tb, call.addr + 3 * PAGE_BYTES), ==, NOTHING);
    g_assert_cmpuint(look(tb, call.addr + 8 * PAGE_BYTES), ==, number_at(AREA + 8 * PAGE_BYTES));
    g_assert_cmpuint(held(tb, &page), ==, number_at(AREA + PAGE_BYTES));
    g_assert_cmpuint(*(uint64_t *)area(tb, AREA), ==, 0);
}

/* The VMM ends, and its memory with it, while another program still has a mapping and a page. */
static void test_vmm_ends(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    ExportCall call;
    ReadCall page;

    number_pages(tb);
    assert_ok(export(tb, AREA, MIB, &call));
    g_assert_cmpuint(look(tb, call.addr), ==, number_at(AREA));
    assert_ok(hold(tb, call.addr + PAGE_BYTES, &page));
    testbed_close_vmm(tb);
    g_assert_cmpuint(look(tb, call.addr), ==, NOTHING);
    g_assert_cmpuint(held(tb, &page), ==, number_at(AREA + PAGE_BYTES));
    assert_ok(end_export(tb, &call));
}

static void test_engine_killed(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    ExportCall call;

    number_pages(tb);
    assert_ok(export(tb, AREA, MIB, &call));
    g_assert_cmpuint(look(tb, call.addr), ==, number_at(AREA));
    engine_peer_kill(g_steal_pointer(&tb->engine));
    g_assert_true(wait_until(!mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), GUEST_TIMEOUT_MS));
    g_assert_cmpuint(*(uint64_t *)area(tb, AREA), ==, number_at(AREA));
}

#define SHORT_MS 300

/*
 * Its programs end a moment after the engine, and the GPU may use what was lent until then. So the
 * guest, which gives memory to others when it has its answers, has none before the next engine.
 */
static void test_engine_killed_answers(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    GuestQueue *q = &tb->guest.queue[VGPU_QUEUE_CONTROL];
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_RESOURCE_UNREF}, *resp;
    ExportCall call;

    assert_ok(export(tb, AREA, MIB, &call));
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_QUEUES);
    assert_ok(guest_submit(&tb->guest, VGPU_QUEUE_CONTROL, &req, sizeof(req), sizeof(req),
                           (void **)&resp));
    engine_peer_kill(tb->engine);
    g_assert_cmpint(guest_queue_wait(q, NULL, SHORT_MS), ==, -ETIMEDOUT);
    tb->engine = engine_peer_start(tb->uuid, 0);
    g_assert_cmpint(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS), >=, 0);
    g_assert_cmphex(resp->type, ==, VIRTIO_GPU_RESP_ERR_UNSPEC);
    assert_answered_with_error(tb, 1);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 2);
}

/* A file that somebody still has does not keep the vGPU. */
static void test_vgpu_removed(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    ExportCall call;

    assert_ok(export(tb, AREA, MIB, &call));
    testbed_close_vmm(tb);
    assert_ok(mdev_remove(tb->uuid));
    g_assert_cmpuint(look(tb, call.addr), ==, NOTHING);
    assert_ok(end_export(tb, &call));
}

typedef struct {
    uint64_t addr;
    uint64_t size;
    uint64_t rounds;
} TouchCall;

/* Touches pages again and again, in a thread of the engine's; those that are gone give EFAULT. */
static void *touch(void *data)
{
    const TouchCall *call = data;
    int ends[2];
    char byte;

    if (pipe2(ends, O_CLOEXEC) < 0)
        abort();
    for (uint64_t i = 0; i < call->rounds; i++) {
        const char *at = (const char *)(uintptr_t)(call->addr + i * PAGE_BYTES % call->size);

        if (write(ends[1], at, 1) == 1 && read(ends[0], &byte, 1) != 1)
            abort();
    }
    close(ends[0]);
    close(ends[1]);
    return data;
}

static pthread_t toucher;
static TouchCall touches;

static int call_touch(EngineCtx *ctx, void *arg)
{
    (void)ctx;
    touches = *(const TouchCall *)arg;
    return -pthread_create(&toucher, NULL, touch, &touches);
}

static int call_touched(EngineCtx *ctx, void *arg)
{
    (void)ctx;
    (void)arg;
    return -pthread_join(toucher, NULL);
}

static void touch_in_engine(Testbed *tb, const ExportCall *call)
{
    TouchCall touch_all = {call->addr, call->pin.size, 20000};

    assert_ok(engine_peer_call(tb->engine, call_touch, &touch_all, sizeof(touch_all)));
}

static void await_touches(Testbed *tb)
{
    assert_ok(engine_peer_call(tb->engine, call_touched, NULL, 0));
}

/* Faults against a VMM that takes pages out of its file. */
static void test_hole_race(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    ExportCall call;

    for (unsigned round = 0; round < 8; round++) {
        number_pages(tb);
        assert_ok(export(tb, AREA, 64 * PAGE_BYTES, &call));
        touch_in_engine(tb, &call);
        for (unsigned i = 0; i < 64; i++)
            punch_hole(tb, AREA + (i * 37 % 64) * PAGE_BYTES, PAGE_BYTES);
        await_touches(tb);
        g_assert_cmpuint(look(tb, call.addr), ==, NOTHING);
        assert_ok(end_export(tb, &call));
        assert_ok(peer_unpin(tb->engine, call.pin.offset));
    }
}

/* The same against the end of its mappings for devices. */
static void test_unmap_race(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    ExportCall call;

    for (unsigned round = 0; round < 8; round++) {
        number_pages(tb);
        assert_ok(export(tb, AREA, 64 * PAGE_BYTES, &call));
        touch_in_engine(tb, &call);
        g_usleep(round * 500);
        assert_ok(vmm_dma_unmap(&tb->container, tb->ram.iova, tb->ram.size));
        await_touches(tb);
        for (unsigned i = 0; i < 64; i++)
            g_assert_cmpuint(look(tb, call.addr + i * PAGE_BYTES), ==, NOTHING);
        assert_ok(vmm_ram_map(&tb->container, &tb->ram));
        assert_ok(end_export(tb, &call));
    }
}

/* As much as a vGPU may have, and nothing stays of it. */
static void test_often(void)
{
    g_autoptr(Testbed) tb = new_testbed(TESTBED_AT_GUEST);
    uint64_t before = vmm_charged_kb();
    ExportCall call;

    for (unsigned round = 0; round < ROUNDS; round++) {
        assert_ok(export(tb, AREA, MIB, &call));
        g_assert_cmpuint(look(tb, call.addr + round % 256 * PAGE_BYTES), !=, NOTHING);
        assert_ok(end_export(tb, &call));
        assert_ok(peer_unpin(tb->engine, call.pin.offset));
    }
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, 0);
    g_assert_cmpuint(vmm_charged_kb(), <=, before + 64);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/export/both-ways", test_both_ways);
    driver_test_add("/export/scattered", test_scattered);
    driver_test_add("/export/joined", test_joined);
    driver_test_add("/export/pinned-by-others", test_pinned_by_others);
    driver_test_add("/export/refusals", test_refusals);
    driver_test_add("/export/without-cuda", test_without_cuda);
    driver_test_add("/export/turned-off", test_turned_off);
    driver_test_add("/export/anonymous-memory", test_anonymous_memory);
    driver_test_add("/export/nothing-lent", test_nothing_lent);
    driver_test_add("/export/private-memory", test_private_memory);
    driver_test_add("/export/huge-pages", test_huge_pages);
    driver_test_add("/export/two-files", test_two_files);
    driver_test_add("/export/mmap-rules", test_mmap_rules);
    driver_test_add("/export/seals", test_seals);
    driver_test_add("/export/listed", test_listed);
    driver_test_add("/export/closed", test_closed);
    driver_test_add("/export/unpin", test_unpin);
    driver_test_add("/export/dma-unmap", test_dma_unmap);
    driver_test_add("/export/reset", test_reset);
    driver_test_add("/export/hole", test_hole);
    driver_test_add("/export/vmm-ends", test_vmm_ends);
    driver_test_add("/export/engine-killed", test_engine_killed);
    driver_test_add("/export/engine-killed-answers", test_engine_killed_answers);
    driver_test_add("/export/vgpu-removed", test_vgpu_removed);
    driver_test_add("/export/hole-race", test_hole_race);
    driver_test_add("/export/unmap-race", test_unmap_race);
    driver_test_add("/export/often", test_often);
    return driver_test_run();
}
