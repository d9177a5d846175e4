/* SPDX-License-Identifier: MIT */
/* Things that are removed while they are used: the mdev, the GPU, the module. Nobody hangs. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "held_mm.h"
#include "testbed.h"

#define MODULE      "mdev_vgpu"
#define PCI_DEVICES "/sys/bus/pci/devices"

static pid_t start_remover(const char *uuid)
{
    pid_t pid = fork();

    if (pid == 0) {
        /* It must not hold the device itself. */
        close_range(STDERR_FILENO + 1, ~0u, 0);
        _exit(mdev_remove(uuid) ? 1 : 0);
    }
    return pid;
}

static bool has_ended(pid_t pid, int *status)
{
    return waitpid(pid, status, WNOHANG) == pid;
}

static void test_unused(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    g_autofree char *node = g_build_filename("/dev/vgpu", tb->uuid, NULL);
    struct stat st;

    g_assert_cmpint(stat(node, &st), ==, 0);
    g_assert_cmpuint(st.st_mode & 0077, ==, 0);
    assert_ok(mdev_remove(tb->uuid));
    g_assert_false(mdev_exists(tb->uuid));
    g_assert_cmpint(stat(node, &st), ==, -1);
    g_assert_cmpint(mdev_type_available(TESTBED_GPU, TESTBED_TYPE), ==, 4);
}

static void test_with_engine(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_ENGINE);
    struct vgpu_engine_info info;

    assert_ok(mdev_remove(tb->uuid));
    g_assert_true(wait_until(atomic_load(&tb->engine->state->removed) > 0 ||
                                 atomic_load(&tb->engine->state->hangups) > 0,
                             5000));
    /* It may still ask, and gets the reason of its end. */
    if (!peer_info(tb->engine, &info))
        g_assert_true(info.state & VGPU_STATE_REMOVED);
    g_assert_cmpint(peer_ready(tb->engine, 1), <, 0);
}

/* The VMM is asked, closes, and the removal ends. */
static void test_while_open(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    int status;
    pid_t pid;

    assert_round_trip(tb, 1);
    vmm_eventfd_take(tb->request_fd, 0);
    pid = start_remover(tb->uuid);
    g_assert_cmpuint(vmm_eventfd_take(tb->request_fd, 15000), >, 0);
    g_assert_false(has_ended(pid, &status));
    testbed_close_vmm(tb);
    g_assert_true(wait_until(has_ended(pid, &status), 30000));
    g_assert_cmpint(status, ==, 0);
    g_assert_false(mdev_exists(tb->uuid));
}

/* A VMM whose guest ignores it is asked again, and works until it closes or is killed. */
static void test_ignored(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_ENGINE);
    int status;
    pid_t remover, vmm = fork();

    if (vmm == 0) {
        testbed_advance(tb, TESTBED_AT_GUEST);
        for (;;)
            pause();
    }
    g_usleep(1500000);
    remover = start_remover(tb->uuid);
    g_usleep(3000000);
    g_assert_false(has_ended(remover, &status));
    kill(vmm, SIGKILL);
    waitpid(vmm, NULL, 0);
    g_assert_true(wait_until(has_ended(remover, &status), 30000));
    g_assert_cmpint(status, ==, 0);
}

/* The window's mapping outlives the device's descriptor: no use after free. */
static void test_mapping_outlives(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    volatile uint32_t *window =
        vmm_region_mmap(&tb->dev, VFIO_PCI_BAR2_REGION_INDEX, 0, MIB, PROT_READ | PROT_WRITE);
    uint64_t addr;
    int status;
    pid_t pid;

    g_assert_true((void *)window != MAP_FAILED);
    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, 16 * PAGE_BYTES, &addr));
    assert_ok(peer_publish(tb->engine, 0, 16 * PAGE_BYTES, addr));
    g_assert_cmphex(window[0], ==, memory_pattern(0, 0));
    testbed_close_vmm(tb);
    g_assert_cmphex(window[0], ==, VGPU_WINDOW_BLANK);
    g_assert_cmphex(window[100 * 1024], ==, VGPU_WINDOW_BLANK);
    /* A process that maps it still holds the vGPU's memory, but not its room on the GPU. */
    pid = start_remover(tb->uuid);
    if (!wait_until(has_ended(pid, &status), 5000)) {
        munmap((void *)window, MIB);
        g_assert_true(wait_until(has_ended(pid, &status), 30000));
        return;
    }
    g_assert_cmpint(status, ==, 0);
    g_assert_cmphex(window[6], ==, VGPU_WINDOW_BLANK);
    munmap((void *)window, MIB);
}

/* While a VMM waits in open for an engine that never comes. */
static void test_during_open(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    int status, opened;
    int64_t start;
    pid_t remover, vmm = fork();

    if (vmm == 0) {
        VmmContainer container;
        VmmDevice dev;

        assert_ok(vmm_container_open(&container));
        _exit(vmm_vgpu_open(&container, &dev, tb->uuid) == -ENODEV ? 0 : 1);
    }
    g_usleep(700000);
    start = now_ms();
    remover = start_remover(tb->uuid);
    g_assert_true(wait_until(has_ended(vmm, &opened), 20000));
    g_assert_cmpint(opened, ==, 0);
    g_assert_cmpint(now_ms() - start, <, 15000);
    g_assert_true(wait_until(has_ended(remover, &status), 20000));
    g_assert_cmpint(status, ==, 0);
}

static int try_unload(void)
{
    return syscall(SYS_delete_module, MODULE, O_NONBLOCK) < 0 ? -errno : 0;
}

static void assert_not_unloaded(const char *when)
{
    int ret = try_unload();

    if (ret != -EWOULDBLOCK && ret != -EBUSY)
        g_error("unloading the module %s: %s", when, ret ? g_strerror(-ret) : "it went");
    g_assert_true(mdev_host_module_loaded());
}

static void test_module_in_use(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);

    assert_not_unloaded("with a vGPU");
    testbed_advance(tb, TESTBED_AT_ENGINE);
    assert_not_unloaded("with an engine");
    testbed_advance(tb, TESTBED_AT_GUEST);
    assert_not_unloaded("with a VMM");
    assert_round_trip(tb, 1);
}

/* An engine that keeps its file open after the vGPU is gone holds the module, nothing else. */
static void test_module_held_by_engine(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_ENGINE);

    assert_ok(mdev_remove(tb->uuid));
    assert_not_unloaded("with an engine's file open");
    assert_ok(mdev_gpu_remove(TESTBED_GPU));
    assert_not_unloaded("with an engine's file open");
}

/*
 * A PCI display function with a driver, or NULL. One that DRM uses is left alone: unbinding
 * virtio-gpu makes 6.12 itself warn (drm_mm_takedown).
 */
static bool has_drm(const char *device)
{
    const char *class_dir = "/sys/class/drm";
    g_autoptr(GDir) dir = g_dir_open(class_dir, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *link = g_build_filename(class_dir, name, NULL);
        g_autofree char *target = g_file_read_link(link, NULL);

        if (target && strstr(target, device))
            return true;
    }
    return false;
}

static char *find_pci_display(void)
{
    g_autoptr(GDir) dir = g_dir_open(PCI_DEVICES, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *driver = g_build_filename(PCI_DEVICES, name, "driver", NULL);
        g_autofree char *path = g_build_filename(PCI_DEVICES, name, "class", NULL);
        g_autofree char *class = NULL;

        if (g_file_get_contents(path, &class, NULL, NULL) && g_str_has_prefix(class, "0x03") &&
            g_file_test(driver, G_FILE_TEST_EXISTS) && !has_drm(name))
            return g_strdup(name);
    }
    return NULL;
}

static char *require_pci_display(void)
{
    char *gpu = find_pci_display();

    if (!gpu)
        driver_test_skip("no PCI display function without DRM here (rig up --gpu soft --gpus 1)");
    return gpu;
}

static void share_gpu(const char *gpu)
{
    struct vgpu_type_desc type = mdev_type(TESTBED_TYPE, TESTBED_VRAM, TESTBED_WINDOW);

    g_assert_true(wait_until(mdev_gpu_add(gpu, TESTBED_GPU_VRAM, &type, 1) == 0, 10000));
}

/* A vGPU whose guest works and has a page of its engine in the window. */
static Testbed *busy_vgpu(const char *gpu)
{
    Testbed *tb = testbed_new_on(gpu, TESTBED_TYPE, TESTBED_AT_GUEST);
    uint64_t addr;

    assert_round_trip(tb, 1);
    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, PAGE_BYTES, &addr));
    assert_ok(peer_publish(tb->engine, 0, PAGE_BYTES, addr));
    assert_window_pattern(tb, 0, 0);
    vmm_eventfd_take(tb->request_fd, 0);
    return tb;
}

/* VMM and engine have been told to leave, and the guest cannot access the engine's memory. */
static void assert_revoked(Testbed *tb)
{
    g_autofree char *node = g_build_filename("/dev/vgpu", tb->uuid, NULL);

    g_assert_cmpuint(vmm_eventfd_take(tb->request_fd, 5000), >, 0);
    g_assert_true(wait_until(atomic_load(&tb->engine->state->removed) > 0 ||
                                 atomic_load(&tb->engine->state->hangups) > 0,
                             5000));
    g_assert_true(wait_until(window_is_blank(tb, 0), 5000));
    g_assert_cmpint(access(node, F_OK), ==, -1);
}

/* The GPU's own driver is unbound under a running vGPU: asked, revoked, deferred, nothing waits. */
static void test_gpu_unbound(void)
{
    g_autofree char *gpu = require_pci_display();
    g_autofree char *driver = g_build_filename(PCI_DEVICES, gpu, "driver", NULL);
    g_autofree char *driver_name = g_file_read_link(driver, NULL);
    g_autofree char *name = g_path_get_basename(driver_name);
    g_autofree char *unbind = g_build_filename("/sys/bus/pci/drivers", name, "unbind", NULL);
    g_autofree char *bind = g_build_filename("/sys/bus/pci/drivers", name, "bind", NULL);
    struct vgpu_type_desc type = mdev_type(TESTBED_TYPE, TESTBED_VRAM, TESTBED_WINDOW);
    g_autoptr(Testbed) tb = NULL;
    int64_t start;

    share_gpu(gpu);
    assert_fails(mdev_gpu_add(gpu, TESTBED_GPU_VRAM, &type, 1), EEXIST);
    tb = busy_vgpu(gpu);

    start = now_ms();
    assert_ok(sysfs_write(unbind, gpu));
    g_assert_cmpint(now_ms() - start, <, 10000);
    assert_revoked(tb);
    testbed_close_vmm(tb);
    g_assert_true(wait_until(!mdev_exists(tb->uuid), 30000));
    /* The GPU comes back, and can be shared again. */
    assert_ok(sysfs_write(bind, gpu));
    share_gpu(gpu);
    assert_ok(mdev_gpu_remove(gpu));
}

/* Removes the GPU from the machine, as far as software can, and finds it again. */
static void pci_remove(const char *gpu)
{
    g_autofree char *path = g_build_filename(PCI_DEVICES, gpu, "remove", NULL);
    int64_t start = now_ms();

    assert_ok(sysfs_write(path, "1"));
    g_assert_cmpint(now_ms() - start, <, 10000);
}

static bool pci_rescan(const char *gpu)
{
    g_autofree char *driver = g_build_filename(PCI_DEVICES, gpu, "driver", NULL);

    sysfs_write("/sys/bus/pci/rescan", "1");
    return wait_until(access(driver, F_OK) == 0, 10000);
}

static bool in_removed(const char *uuid)
{
    g_autofree char *path = g_build_filename("/sys/devices/vgpu-removed", uuid, NULL);

    return access(path, F_OK) == 0;
}

/*
 * The GPU itself is removed, under several vGPUs: one that works, one that is being removed and
 * waits for its VMM, one that is unused. Held ones stay until they are closed, in a separate place
 * in sysfs.
 */
static void test_gpu_removed(void)
{
    g_autofree char *gpu = require_pci_display();
    g_autoptr(Testbed) works = NULL;
    g_autoptr(Testbed) leaves = NULL;
    g_autoptr(Testbed) idle = NULL;
    struct vgpu_type_desc type = mdev_type(TESTBED_TYPE, TESTBED_VRAM, TESTBED_WINDOW);
    int status;
    pid_t remover;

    share_gpu(gpu);
    works = busy_vgpu(gpu);
    leaves = busy_vgpu(gpu);
    idle = testbed_new_on(gpu, TESTBED_TYPE, TESTBED_AT_ENGINE);
    remover = start_remover(leaves->uuid);
    g_assert_cmpuint(vmm_eventfd_take(leaves->request_fd, 15000), >, 0);

    pci_remove(gpu);
    assert_revoked(works);
    assert_revoked(leaves);
    g_assert_true(in_removed(works->uuid));
    g_assert_false(has_ended(remover, &status));
    g_assert_true(pci_rescan(gpu));
    /* Its name is taken until the VMMs have closed its vGPUs. */
    assert_fails(mdev_gpu_add(gpu, TESTBED_GPU_VRAM, &type, 1), EAGAIN);

    testbed_close_vmm(leaves);
    g_assert_true(wait_until(has_ended(remover, &status), 30000));
    g_assert_cmpint(status, ==, 0);
    g_assert_true(in_removed(works->uuid));
    testbed_close_vmm(works);
    g_assert_true(wait_until(!mdev_exists(works->uuid), 30000));
    g_assert_true(wait_until(!mdev_exists(idle->uuid), 30000));
    g_assert_false(in_removed(works->uuid));
    share_gpu(gpu);
    assert_ok(mdev_gpu_remove(gpu));
}

/* Until a call that was to begin when an address space is held waits for that. */
#define IN_CALL_MS 300

static void *pop_later(void *data)
{
    static uint8_t buf[PAGE_BYTES];
    EngineCtx *ctx = data;
    uint64_t epoch = engine_epoch(ctx);
    struct vgpu_queue_request pop;

    held_mm_wait();
    engine_pop(ctx, VGPU_QUEUE_CONTROL, epoch, buf, sizeof(buf), &pop);
    return NULL;
}

static int call_pop_later(EngineCtx *ctx, void *arg)
{
    pthread_t thread;

    (void)arg;
    return pthread_create(&thread, NULL, pop_later, ctx) ? -EAGAIN : 0;
}

/* Beside the VMM, whose address space is held. */
static pid_t start_remover_of_gpu(const char *gpu)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    close_range(STDERR_FILENO + 1, ~0u, 0);
    held_mm_wait();
    g_usleep(IN_CALL_MS * 1000);
    pci_remove(gpu);
    g_assert_true(held_mm_is_held());
    _exit(0);
}

/* The GPU goes while its vGPU waits for its VMM's memory. No other tenant waits for that. */
static void test_gpu_removed_while_stuck(void)
{
    g_autofree char *gpu = require_pci_display();
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    g_autoptr(Testbed) tb = NULL;
    pthread_t holder;
    int status = -1;
    pid_t remover;
    uint64_t iova;
    void *resp;

    held_mm_need();
    share_gpu(gpu);
    tb = busy_vgpu(gpu);
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_QUEUES);
    /* In a page that the driver has not pinned. */
    guest_alloc(&tb->guest, PAGE_BYTES, PAGE_BYTES, &iova);
    assert_ok(guest_submit(&tb->guest, VGPU_QUEUE_CONTROL, &req, sizeof(req), sizeof(req), &resp));
    assert_ok(engine_peer_call(tb->engine, call_pop_later, NULL, 0));
    remover = start_remover_of_gpu(gpu);
    g_assert_cmpint(pthread_create(&holder, NULL, held_mm_long_thread, NULL), ==, 0);
    g_assert_cmpint(waitpid(remover, &status, 0), ==, remover);
    held_mm_let_go();
    pthread_join(holder, NULL);
    g_assert_true(pci_rescan(gpu));
    g_assert_cmpint(status, ==, 0);
    assert_revoked(tb);
    testbed_close_vmm(tb);
    g_assert_true(wait_until(!mdev_exists(tb->uuid), 30000));
    share_gpu(gpu);
    assert_ok(mdev_gpu_remove(gpu));
}

/* Repeatedly, with a VMM that is killed in the middle: nothing warns, nothing leaks. */
static void test_gpu_removed_often(void)
{
    g_autofree char *gpu = require_pci_display();

    for (unsigned round = 0; round < 8; round++) {
        g_autoptr(Testbed) tb = NULL;
        pid_t vmm;

        share_gpu(gpu);
        tb = testbed_new_on(gpu, TESTBED_TYPE, TESTBED_AT_ENGINE);
        vmm = fork();
        if (vmm == 0) {
            testbed_advance(tb, TESTBED_AT_GUEST);
            for (;;)
                pause();
        }
        g_usleep(300000);
        if (round % 2)
            kill(vmm, SIGKILL);
        pci_remove(gpu);
        kill(vmm, SIGKILL);
        waitpid(vmm, NULL, 0);
        g_assert_true(wait_until(!mdev_exists(tb->uuid), 30000));
        g_assert_true(pci_rescan(gpu));
    }
    share_gpu(gpu);
    assert_ok(mdev_gpu_remove(gpu));
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/remove/unused", test_unused);
    driver_test_add("/remove/with-engine", test_with_engine);
    driver_test_add("/remove/while-open", test_while_open);
    driver_test_add("/remove/ignored", test_ignored);
    driver_test_add("/remove/mapping-outlives", test_mapping_outlives);
    driver_test_add("/remove/during-open", test_during_open);
    driver_test_add("/remove/module-in-use", test_module_in_use);
    driver_test_add("/remove/module-held-by-engine", test_module_held_by_engine);
    driver_test_add("/remove/gpu-unbound", test_gpu_unbound);
    driver_test_add("/remove/gpu-removed", test_gpu_removed);
    driver_test_add("/remove/gpu-removed-while-stuck", test_gpu_removed_while_stuck);
    driver_test_add("/remove/gpu-removed-often", test_gpu_removed_often);
    return driver_test_run();
}
