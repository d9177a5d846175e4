/* SPDX-License-Identifier: MIT */
/* Two vGPUs of one GPU, used by two VMs at once, do not affect each other. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/capability.h>

#include "testbed.h"

#define ROUNDS 30

static Testbed *second_vgpu(TestbedStage stage)
{
    return testbed_new_on(TESTBED_GPU, TESTBED_TYPE, stage);
}

/* Requests, window and guest memory of one VM, with its own patterns, checked all the time. */
static void work_tenant(Testbed *tb, unsigned seed)
{
    struct vgpu_mem_entry entry = {TESTBED_RAM_IOVA + 8 * MIB, 4 * PAGE_BYTES};
    volatile uint32_t *window = (volatile uint32_t *)testbed_window(tb);
    uint64_t addr, mem;
    uint32_t word;

    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, 16 * PAGE_BYTES, &addr));
    for (unsigned round = 1; round <= ROUNDS; round++) {
        uint64_t offset;

        assert_round_trip(tb, (uint64_t)seed << 32 | round);
        assert_ok(peer_publish(tb->engine, 0, 16 * PAGE_BYTES, addr));
        window[5 * 1024] = seed ^ round;
        assert_ok(peer_peek(tb->engine, addr + 5 * PAGE_BYTES, &word, sizeof(word)));
        g_assert_cmphex(word, ==, seed ^ round);
        memset(tb->ram.mem + 8 * MIB, (int)(seed + round), 4 * PAGE_BYTES);
        assert_ok(peer_pin(tb->engine, &entry, 1, VGPU_MEM_WRITE, &offset, &mem));
        assert_ok(peer_peek(tb->engine, mem + 3 * PAGE_BYTES, &word, sizeof(word)));
        g_assert_cmphex(word & 0xff, ==, (seed + round) & 0xff);
        assert_ok(peer_unpin(tb->engine, offset));
        assert_ok(peer_unpublish(tb->engine, 0, 16 * PAGE_BYTES));
        g_assert_cmphex(window[5 * 1024], ==, VGPU_WINDOW_BLANK);
    }
}

static pid_t start_vm(Testbed *tb, unsigned seed)
{
    pid_t pid = fork();

    if (pid == 0) {
        testbed_advance(tb, TESTBED_AT_GUEST);
        work_tenant(tb, seed);
        _exit(0);
    }
    return pid;
}

static void assert_well(pid_t pid)
{
    int status;

    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(status, ==, 0);
}

static void test_at_once(void)
{
    g_autoptr(Testbed) a = testbed_new(TESTBED_AT_ENGINE);
    g_autoptr(Testbed) b = second_vgpu(TESTBED_AT_ENGINE);
    pid_t first = start_vm(a, 0x1111), second = start_vm(b, 0x2222);

    assert_well(first);
    assert_well(second);
}

/* @b as a second device of @a's VM, with a driver that uses no queue. */
static void open_in_same_vm(Testbed *a, const Testbed *b, VmmDevice *dev, Guest *guest)
{
    assert_ok(vmm_vgpu_open(&a->container, dev, b->uuid));
    guest_probe(guest, dev, &a->ram);
    guest_reset(guest);
    g_assert_true(guest_negotiate(guest, GUEST_FEATURES));
    guest_set_status(guest, guest_status(guest) | VIRTIO_CONFIG_S_DRIVER_OK);
}

/* In one VM: two devices in one container, with the same guest memory. */
static void test_same_vm(void)
{
    g_autoptr(Testbed) a = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) b = second_vgpu(TESTBED_AT_ENGINE);
    struct vgpu_mem_entry entry = {TESTBED_RAM_IOVA + 8 * MIB, 4 * PAGE_BYTES};
    VmmDevice dev;
    Guest guest;
    uint64_t in_a, in_b;
    uint32_t word;

    open_in_same_vm(a, b, &dev, &guest);
    assert_ok(peer_pin(a->engine, &entry, 1, VGPU_MEM_WRITE, NULL, &in_a));
    assert_ok(peer_pin(b->engine, &entry, 1, VGPU_MEM_WRITE, NULL, &in_b));
    assert_ok(peer_poke(a->engine, in_a, "four", 4));
    assert_ok(peer_peek(b->engine, in_b, &word, 4));
    g_assert_cmpmem(&word, 4, "four", 4);
    /* The reset of one removes nothing of the other's. */
    guest_reset(&a->guest);
    assert_ok(peer_peek(a->engine, in_a, &word, 4));
    g_assert_cmphex(word, ==, 0xffffffff);
    assert_ok(peer_peek(b->engine, in_b, &word, 4));
    g_assert_cmpmem(&word, 4, "four", 4);
    assert_ok(vmm_dma_unmap(&a->container, a->ram.iova, a->ram.size));
    assert_ok(peer_peek(b->engine, in_b, &word, 4));
    g_assert_cmphex(word, ==, 0xffffffff);
    guest_free(&guest);
    vmm_device_close(&dev);
}

/* One works while the other floods, is reset, loses its engine, loses its VMM. */
static void test_neighbour_dies(void)
{
    g_autoptr(Testbed) a = testbed_new(TESTBED_AT_ENGINE);
    g_autoptr(Testbed) b = second_vgpu(TESTBED_AT_ENGINE);
    pid_t good = start_vm(a, 0x3333);

    for (unsigned round = 0; round < 4; round++) {
        pid_t bad = fork();

        if (bad == 0) {
            testbed_advance(b, TESTBED_AT_GUEST);
            for (unsigned i = 1;; i++) {
                guest_queue_kick_always(&b->guest.queue[0]);
                b->guest.ram_used = 0;
                if (i % 50 == 0)
                    guest_up(&b->guest, GUEST_FEATURES);
            }
        }
        g_usleep(400000);
        if (round % 2) {
            engine_peer_kill(b->engine);
            kill(bad, SIGKILL);
            b->engine = engine_peer_start(b->uuid, 0);
        } else {
            kill(bad, SIGKILL);
        }
        waitpid(bad, NULL, 0);
    }
    assert_well(good);
    testbed_advance(b, TESTBED_AT_GUEST);
    assert_round_trip(b, 1);
}

/* An engine is valid for its own vGPU only: its published memory shows nowhere else. */
static void test_windows_apart(void)
{
    g_autoptr(Testbed) a = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) b = second_vgpu(TESTBED_AT_GUEST);
    uint64_t addr;

    testbed_window(a);
    testbed_window(b);
    assert_ok(peer_alloc(a->engine, MEMORY_MEMFD, 8 * PAGE_BYTES, &addr));
    assert_ok(peer_publish(a->engine, 0, 8 * PAGE_BYTES, addr));
    assert_window_pattern(a, 0, 0);
    assert_window_blank(b, 0);
    guest_queue_want_interrupt(&a->guest.queue[0], true);
    assert_round_trip(a, 1);
    g_assert_cmpuint(vmm_eventfd_take(a->guest.vector_fd[1], 5000), ==, 1);
    g_assert_cmpuint(vmm_eventfd_take(b->guest.vector_fd[1], 0), ==, 0);
    engine_peer_kill(b->engine);
    b->engine = NULL;
    assert_round_trip(a, 2);
    assert_window_pattern(a, PAGE_BYTES, 1);
}

/* A stretch of a VM's memory beside its RAM, that both vGPUs use while the VMM maps and unmaps it.
 */
#define STORM_IOVA   0x80000000ull
#define STORM_PAGES  64ull
#define STORM_PINS   16
#define STORM_ROUNDS 50

static int32_t pin_storm_range(EngineCtx *ctx, uint64_t epoch, uint64_t *offset)
{
    struct vgpu_mem_entry entry = {STORM_IOVA, STORM_PAGES * PAGE_BYTES};
    struct vgpu_mem_pin pin = {
        .argsz = sizeof(pin), .epoch = epoch, .nentries = 1, .entries = (uintptr_t)&entry};
    int ret = engine_ioctl(ctx, VGPU_ENGINE_MEM_PIN, &pin);

    *offset = ret ? 0 : pin.offset;
    return ret;
}

/* Always has STORM_PINS of them, so that taking them away takes a while, in which the other engine
 * pins. */
static void *pin_again_and_again(void *data)
{
    EngineCtx *ctx = data;
    uint64_t offset[STORM_PINS] = {0};
    struct vgpu_mem_unpin unpin = {.argsz = sizeof(unpin), .epoch = engine_epoch(ctx)};

    for (unsigned i = 0;; i = (i + 1) % STORM_PINS) {
        unpin.offset = offset[i];
        if (unpin.offset)
            engine_ioctl(ctx, VGPU_ENGINE_MEM_UNPIN, &unpin);
        pin_storm_range(ctx, unpin.epoch, &offset[i]);
    }
    return NULL;
}

/* Threads of the engine that run until it ends. */
static int call_start_storm(EngineCtx *ctx, void *arg)
{
    pthread_t thread;

    (void)arg;
    for (unsigned i = 0; i < 2; i++) {
        if (pthread_create(&thread, NULL, pin_again_and_again, ctx))
            return -EAGAIN;
        pthread_detach(thread);
    }
    return 0;
}

#define TRACING "/sys/kernel/tracing/"
#define PROBE   "vgputest"

/* Counts the driver's calls from now on. False: this kernel cannot. */
static bool probe_unmaps(void)
{
    if (access(TRACING "kprobe_events", F_OK))
        mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
    return !sysfs_write(TRACING "kprobe_events",
                        "p:" PROBE "/unmap mdev_vgpu:vgpu_mem_dma_unmap") &&
           !sysfs_write(TRACING "events/" PROBE "/unmap/enable", "1");
}

static unsigned long probed_unmaps(void)
{
    g_autofree char *profile = NULL;
    char *line;

    g_assert_true(g_file_get_contents(TRACING "kprobe_profile", &profile, NULL, NULL));
    line = strstr(profile, "unmap ");
    g_assert_nonnull(line);
    return strtoul(line + strlen("unmap "), NULL, 10);
}

static void unprobe_unmaps(void)
{
    sysfs_write(TRACING "events/" PROBE "/unmap/enable", "0");
    sysfs_write(TRACING "kprobe_events", "-:" PROBE "/unmap");
}

static void set_file_max(const char *value)
{
    assert_ok(sysfs_write("/proc/sys/fs/file-max", value));
}

/* Whether this task gets a file that the host has no more room for. */
static void set_privileged(bool on)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    g_assert_cmpint(syscall(SYS_capget, &header, data), ==, 0);
    if (on)
        data[0].effective |= 1u << CAP_SYS_ADMIN;
    else
        data[0].effective &= ~(1u << CAP_SYS_ADMIN);
    g_assert_cmpint(syscall(SYS_capset, &header, data), ==, 0);
}

/*
 * type1 tells one device after the other that a range goes, looks whether something of it is pinned
 * again, and after ten times calls BUG(). Each of two vGPUs can pin while the other is told.
 * @files: the driver can note in a file that a range goes.
 */
static void unmap_storm(bool files)
{
    g_autoptr(Testbed) a = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) b = second_vgpu(TESTBED_AT_ENGINE);
    uint8_t *mem = mmap(NULL, STORM_PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    VmmDevice dev;
    Guest guest;
    unsigned long most = 0, calls;
    g_autofree char *file_max = NULL;
    int ret;

    open_in_same_vm(a, b, &dev, &guest);
    if (!probe_unmaps())
        driver_test_skip("this kernel has no kprobes");
    g_assert_true(g_file_get_contents("/proc/sys/fs/file-max", &file_max, NULL, NULL));
    if (!files)
        set_file_max("1");
    assert_ok(engine_peer_call(a->engine, call_start_storm, NULL, 0));
    assert_ok(engine_peer_call(b->engine, call_start_storm, NULL, 0));
    for (unsigned i = 0; i < STORM_ROUNDS; i++) {
        assert_ok(vmm_dma_map(&a->container, mem, STORM_IOVA, STORM_PAGES * PAGE_BYTES,
                              VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE));
        g_usleep(2000);
        calls = probed_unmaps();
        set_privileged(files);
        ret = vmm_dma_unmap(&a->container, STORM_IOVA, STORM_PAGES * PAGE_BYTES);
        set_privileged(true);
        assert_ok(ret);
        most = MAX(most, probed_unmaps() - calls);
    }
    set_file_max(file_max);
    unprobe_unmaps();
    g_test_message("type1 told the two of one unmapping %lu times at most", most);
    /* Twice each: a pin may have been under way when it began. */
    g_assert_cmpuint(most, <=, 4);
    assert_round_trip(a, 1);
    engine_peer_kill(b->engine);
    b->engine = NULL;
    guest_free(&guest);
    vmm_device_close(&dev);
}

static void test_unmap_storm(void)
{
    unmap_storm(true);
}

/* The host has no file left for the driver's notes: it refuses pins for longer than needed. */
static void test_unmap_storm_no_files(void)
{
    unmap_storm(false);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/two/at-once", test_at_once);
    driver_test_add("/two/same-vm", test_same_vm);
    driver_test_add("/two/unmap-storm", test_unmap_storm);
    driver_test_add("/two/unmap-storm-no-files", test_unmap_storm_no_files);
    driver_test_add("/two/neighbour-dies", test_neighbour_dies);
    driver_test_add("/two/windows-apart", test_windows_apart);
    return driver_test_run();
}
