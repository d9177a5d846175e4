/* SPDX-License-Identifier: MIT */
/*
 * Every allocation of every operation fails once: /proc/<pid>/fail-nth of a kernel with fault
 * injection. The operation fails or copes; nothing leaks, nothing warns, and then it works.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "testbed.h"

#define FAIL_NTH    "/proc/thread-self/fail-nth"
#define DEBUGFS     "/sys/kernel/debug/"
#define MOST_FAULTS 2000
/* Of the later allocations, most of which are the driver core's, not each is tried. */
#define EACH_FAULT 60
#define STRIDE     7

typedef struct {
    int (*run)(void *arg);
    void (*undo)(void *arg);
} Operation;

/* The addresses of the driver's code. */
static void module_range(char start[32], char end[32])
{
    g_autofree char *text = NULL;
    const char *line;
    uint64_t base, size;

    g_assert_true(g_file_get_contents("/proc/modules", &text, NULL, NULL));
    line = strstr(text, "mdev_vgpu ");
    g_assert_nonnull(line);
    size = g_ascii_strtoull(line + strlen("mdev_vgpu "), NULL, 10);
    base = g_ascii_strtoull(strstr(line, "0x"), NULL, 16);
    g_snprintf(start, 32, "0x%" G_GINT64_MODIFIER "x", base);
    g_snprintf(end, 32, "0x%" G_GINT64_MODIFIER "x", base + size);
}

/* A function of another module, roughly. */
static void symbol_range(const char *symbol, char start[32], char end[32])
{
    g_autofree char *text = NULL;
    g_autofree char *key = g_strdup_printf(" %s\t", symbol);
    const char *line;
    uint64_t base;

    g_assert_true(g_file_get_contents("/proc/kallsyms", &text, NULL, NULL));
    line = strstr(text, key);
    g_assert_nonnull(line);
    while (line > text && line[-1] != '\n')
        line--;
    base = g_ascii_strtoull(line, NULL, 16);
    g_snprintf(start, 32, "0x%" G_GINT64_MODIFIER "x", base);
    g_snprintf(end, 32, "0x%" G_GINT64_MODIFIER "x", base + 0x1000);
}

static int set_fault(const char *fault, const char *name, const char *value)
{
    g_autofree char *path = g_build_filename(DEBUGFS, fault, name, NULL);

    return sysfs_write(path, value);
}

/*
 * Only allocations by the driver, direct or indirect, fail; not in vfio_create_group(), which does
 * not undo its own work cleanly (6.12: a WARNING of vfio_group_release()).
 */
static void require_fault_injection(void)
{
    static const char *const faults[] = {"failslab", "fail_page_alloc", "fail_usercopy"};
    char start[32], end[32], bad_start[32], bad_end[32];

    if (access(FAIL_NTH, W_OK))
        driver_test_skip("this kernel has no fault injection (KERNEL=6.12-debug has)");
    module_range(start, end);
    symbol_range("vfio_create_group", bad_start, bad_end);
    for (size_t i = 0; i < G_N_ELEMENTS(faults); i++) {
        if (set_fault(faults[i], "require-start", start) ||
            set_fault(faults[i], "require-end", end) ||
            set_fault(faults[i], "reject-start", bad_start) ||
            set_fault(faults[i], "reject-end", bad_end) || set_fault(faults[i], "verbose", "0"))
            driver_test_skip("debugfs has no %s with a stack filter", faults[i]);
    }
    set_fault("failslab", "ignore-gfp-wait", "N");
    set_fault("fail_page_alloc", "ignore-gfp-wait", "N");
    set_fault("fail_page_alloc", "min-order", "0");
}

static int arm_fault(unsigned n)
{
    g_autofree char *text = g_strdup_printf("%u", n);
    int fd = open(FAIL_NTH, O_RDWR | O_CLOEXEC);

    g_assert_cmpint(write(fd, text, strlen(text)), >, 0);
    return fd;
}

/* Ends it; whether the fault occurred. */
static bool disarm_fault(int fd)
{
    char text[32] = "";

    g_assert_cmpint(pread(fd, text, sizeof(text) - 1, 0), >, 0);
    g_assert_cmpint(pwrite(fd, "0", 1, 0), ==, 1);
    close(fd);
    return atoi(text) == 0;
}

/* Until the operation finishes without having hit its fault. */
static void fail_each(const Operation *op, void *arg)
{
    for (unsigned n = 1; n < MOST_FAULTS; n += n < EACH_FAULT ? 1 : STRIDE) {
        int fd = arm_fault(n);
        int ret = op->run(arg);
        bool met = disarm_fault(fd);

        if (!ret)
            op->undo(arg);
        if (!met) {
            assert_ok(ret);
            g_printerr("fewer than %u faults\n", n);
            return;
        }
    }
    g_error("still failing after %u faults", MOST_FAULTS);
}

static int run_add(void *arg)
{
    return mdev_gpu_add(TESTBED_GPU, TESTBED_GPU_VRAM, arg, 1);
}

static void undo_add(void *arg)
{
    (void)arg;
    assert_ok(mdev_gpu_remove(TESTBED_GPU));
}

static void test_add_gpu(void)
{
    const Operation op = {run_add, undo_add};
    struct vgpu_type_desc type = mdev_type(TESTBED_TYPE, TESTBED_VRAM, TESTBED_WINDOW);

    require_fault_injection();
    fail_each(&op, &type);
}

/* Types with other names: whatever fails, the GPU stays shared and drained, with these or those. */
static int run_set_types(void *arg)
{
    int ret = mdev_gpu_set_types(TESTBED_GPU, TESTBED_GPU_VRAM, arg, 1);

    if (ret)
        g_assert_cmpint(mdev_type_available(TESTBED_GPU, TESTBED_TYPE), ==, 0);
    return ret;
}

static void undo_set_types(void *arg)
{
    struct vgpu_type_desc old = mdev_type(TESTBED_TYPE, TESTBED_VRAM, TESTBED_WINDOW);
    const struct vgpu_type_desc *new = arg;

    g_assert_cmpint(mdev_type_available(TESTBED_GPU, new->name), ==, 0);
    assert_ok(mdev_gpu_set_types(TESTBED_GPU, TESTBED_GPU_VRAM, &old, 1));
}

static void test_set_types(void)
{
    const Operation op = {run_set_types, undo_set_types};
    struct vgpu_type_desc type = mdev_type("other", TESTBED_VRAM, TESTBED_WINDOW);

    require_fault_injection();
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GPU);
    assert_ok(mdev_gpu_drain(TESTBED_GPU, true));
    fail_each(&op, &type);
    assert_ok(mdev_gpu_drain(TESTBED_GPU, false));
    g_assert_cmpint(mdev_type_available(TESTBED_GPU, TESTBED_TYPE), ==, 4);
}

static int run_create(void *arg)
{
    return mdev_create(TESTBED_GPU, TESTBED_TYPE, arg);
}

static void undo_create(void *arg)
{
    assert_ok(mdev_remove(arg));
}

static void test_create(void)
{
    const Operation op = {run_create, undo_create};
    g_autofree char *uuid = mdev_uuid_new();

    require_fault_injection();
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GPU);
    fail_each(&op, uuid);
    g_assert_cmpint(mdev_type_available(TESTBED_GPU, TESTBED_TYPE), ==, 4);
}

typedef struct {
    Testbed *tb;
    VmmContainer container;
    VmmDevice dev;
} OpenArg;

static int run_open(void *arg)
{
    OpenArg *open_arg = arg;
    int ret = vmm_container_open(&open_arg->container);

    if (ret)
        return ret;
    ret = vmm_vgpu_open(&open_arg->container, &open_arg->dev, open_arg->tb->uuid);
    if (ret)
        vmm_container_close(&open_arg->container);
    return ret;
}

static void undo_open(void *arg)
{
    OpenArg *open_arg = arg;

    vmm_device_close(&open_arg->dev);
    vmm_container_close(&open_arg->container);
}

static void test_open(void)
{
    const Operation op = {run_open, undo_open};
    OpenArg arg = {0};

    require_fault_injection();
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_ENGINE);
    arg.tb = tb;
    fail_each(&op, &arg);
    testbed_advance(tb, TESTBED_AT_GUEST);
    assert_round_trip(tb, 1);
}

/* In the engine's process. */
typedef struct {
    EngineCtx *ctx;
    uint64_t addr;
    uint64_t offset;
    struct vgpu_mem_entry entry;
} EngineArg;

static int run_publish(void *arg)
{
    EngineArg *a = arg;
    struct vgpu_window_range range = {
        .argsz = sizeof(range), .size = 16 * PAGE_BYTES, .addr = a->addr};

    range.epoch = engine_epoch(a->ctx);
    return engine_ioctl(a->ctx, VGPU_ENGINE_WINDOW_PUBLISH, &range);
}

static void undo_publish(void *arg)
{
    EngineArg *a = arg;
    struct vgpu_window_range range = {.argsz = sizeof(range), .size = 16 * PAGE_BYTES};

    range.epoch = engine_epoch(a->ctx);
    assert_ok(engine_ioctl(a->ctx, VGPU_ENGINE_WINDOW_UNPUBLISH, &range));
}

static int call_publish(EngineCtx *ctx, void *arg)
{
    const Operation op = {run_publish, undo_publish};
    EngineArg engine_arg = {.ctx = ctx, .addr = *(uint64_t *)arg};

    fail_each(&op, &engine_arg);
    return 0;
}

static void test_publish(void)
{
    uint64_t addr;

    require_fault_injection();
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, 16 * PAGE_BYTES, &addr));
    assert_ok(engine_peer_call(tb->engine, call_publish, &addr, sizeof(addr)));
    assert_ok(peer_publish(tb->engine, 0, 16 * PAGE_BYTES, addr));
    assert_window_pattern(tb, 3 * PAGE_BYTES, 3);
}

static int run_pin(void *arg)
{
    EngineArg *a = arg;
    struct vgpu_mem_pin pin = {.argsz = sizeof(pin),
                               .flags = VGPU_MEM_WRITE,
                               .nentries = 1,
                               .entries = (uintptr_t)&a->entry};
    void *addr;
    int ret;

    pin.epoch = engine_epoch(a->ctx);
    ret = engine_ioctl(a->ctx, VGPU_ENGINE_MEM_PIN, &pin);
    if (ret)
        return ret;
    a->offset = pin.offset;
    addr = mmap(NULL, pin.size, PROT_READ | PROT_WRITE, MAP_SHARED, a->ctx->fd, (off_t)pin.offset);
    if (addr != MAP_FAILED) {
        (void)*(volatile uint8_t *)addr;
        munmap(addr, pin.size);
    }
    return 0;
}

static void undo_pin(void *arg)
{
    EngineArg *a = arg;
    struct vgpu_mem_unpin unpin = {.argsz = sizeof(unpin), .offset = a->offset};

    unpin.epoch = engine_epoch(a->ctx);
    assert_ok(engine_ioctl(a->ctx, VGPU_ENGINE_MEM_UNPIN, &unpin));
}

static int call_pin(EngineCtx *ctx, void *arg)
{
    const Operation op = {run_pin, undo_pin};
    EngineArg engine_arg = {
        .ctx = ctx,
        .entry = {TESTBED_RAM_IOVA + 8 * MIB, 8 * PAGE_BYTES},
    };

    (void)arg;
    fail_each(&op, &engine_arg);
    return 0;
}

static void test_pin(void)
{
    require_fault_injection();
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    assert_ok(engine_peer_call(tb->engine, call_pin, NULL, 0));
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, 0);
    assert_round_trip(tb, 1);
}

/* An engine that runs out of memory; its end is no trouble either. */
static int run_attach(void *arg)
{
    EngineArg *a = arg;

    return engine_ioctl(a->ctx, VGPU_ENGINE_ATTACH, NULL);
}

static char attach_node[128];

static void undo_attach(void *arg)
{
    EngineArg *a = arg;

    close(a->ctx->fd);
    a->ctx->fd = open(attach_node, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

static int call_attach(EngineCtx *ctx, void *arg)
{
    const Operation op = {run_attach, undo_attach};
    EngineArg engine_arg = {.ctx = ctx};

    g_strlcpy(attach_node, arg, sizeof(attach_node));
    fail_each(&op, &engine_arg);
    return 0;
}

static void test_attach(void)
{
    char node[128];
    EnginePeer *engine;

    require_fault_injection();
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    g_snprintf(node, sizeof(node), "/dev/vgpu/%s", tb->uuid);
    engine = engine_peer_start(tb->uuid, ENGINE_NO_ATTACH);
    assert_ok(engine_peer_call(engine, call_attach, node, sizeof(node)));
    engine_peer_stop(engine);
    testbed_advance(tb, TESTBED_AT_GUEST);
    assert_round_trip(tb, 1);
}

static uint64_t touch_addr;

/* The guest touches the window. A fault there costs a retry, never a signal. */
static int run_touch(void *arg)
{
    Testbed *tb = arg;
    volatile uint8_t *window = testbed_window(tb);

    for (uint64_t page = 0; page < 32; page++) {
        uint32_t word = *(volatile uint32_t *)(window + page * PAGE_BYTES);

        if (word != (page < 16 ? memory_pattern(page, 0) : VGPU_WINDOW_BLANK))
            return -EIO;
    }
    return 0;
}

static void undo_touch(void *arg)
{
    Testbed *tb = arg;

    guest_reset(&tb->guest);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_ok(peer_publish(tb->engine, 0, 16 * PAGE_BYTES, touch_addr));
}

static void test_touch(void)
{
    const Operation op = {run_touch, undo_touch};
    uint64_t addr;

    require_fault_injection();
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    testbed_window(tb);
    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, 16 * PAGE_BYTES, &addr));
    touch_addr = addr;
    assert_ok(peer_publish(tb->engine, 0, 16 * PAGE_BYTES, addr));
    fail_each(&op, tb);
}

static int push_ok(EngineCtx *ctx, uint64_t epoch, uint32_t token)
{
    struct virtio_gpu_ctrl_hdr hdr = {.type = VIRTIO_GPU_RESP_OK_NODATA};

    return engine_push(ctx, VGPU_QUEUE_CONTROL, epoch, token, &hdr, sizeof(hdr));
}

/* Takes and answers one request with a fault on the way; then finishes the rest of it. */
static int call_serve(EngineCtx *ctx, void *arg)
{
    uint64_t epoch = engine_epoch(ctx);
    struct virtio_gpu_ctrl_hdr hdr;
    struct vgpu_queue_request pop;
    uint32_t token = 0;
    int fd = arm_fault(*(unsigned *)arg);
    int popped = engine_pop(ctx, VGPU_QUEUE_CONTROL, epoch, &hdr, sizeof(hdr), &pop);
    int ret = popped ? popped : push_ok(ctx, epoch, token = pop.token);

    disarm_fault(fd);
    if (ret == -EPROTO || !ret)
        return ret;
    if (!popped) {
        ret = push_ok(ctx, epoch, token);
        return ret == -ENOENT ? 0 : ret;
    }
    ret = engine_pop(ctx, VGPU_QUEUE_CONTROL, epoch, &hdr, sizeof(hdr), &pop);
    if (ret)
        return ret == -EAGAIN ? 0 : ret; /* the driver has answered it by itself */
    return push_ok(ctx, epoch, pop.token);
}

/*
 * Requests under a failing allocator are answered, with data or with an error, each once. If a ring
 * was not accessible, the device asks for a reset instead.
 */
static void test_requests(void)
{
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    unsigned answered = 0;

    require_fault_injection();
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_QUEUES);
    for (unsigned n = 1; n < 30; n++) {
        struct virtio_gpu_ctrl_hdr *resp;
        uint32_t len = 0;
        int ret;

        assert_ok(guest_submit(&tb->guest, VGPU_QUEUE_CONTROL, &req, sizeof(req), sizeof(req),
                               (void **)&resp));
        ret = engine_peer_call(tb->engine, call_serve, &n, sizeof(n));
        if (ret == -EPROTO) {
            g_assert_true(guest_status(&tb->guest) & VIRTIO_CONFIG_S_NEEDS_RESET);
            guest_up(&tb->guest, GUEST_FEATURES);
            continue;
        }
        assert_ok(ret);
        assert_ok(guest_queue_wait(&tb->guest.queue[VGPU_QUEUE_CONTROL], &len, GUEST_TIMEOUT_MS));
        /* Length 0: the response's memory was not accessible. */
        g_assert_true(!len || resp->type == VIRTIO_GPU_RESP_OK_NODATA ||
                      resp->type == VIRTIO_GPU_RESP_ERR_UNSPEC);
        answered++;
    }
    g_assert_cmpuint(answered, >, 10);
    atomic_store(&tb->engine->state->hold, 0);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

/* Takes one of two requests with a fault on the way. There is always something, so it must not
 * sleep. */
static int call_exchange(EngineCtx *ctx, void *arg)
{
    struct vgpu_queue_request request;
    struct vgpu_queue_exchange x =
        exchange_for_pop(VGPU_QUEUE_CONTROL, engine_epoch(ctx), ctx->request, PAGE_BYTES, &request);
    struct vgpu_engine_event event;
    int fd, ret;

    x.wait_ms = VGPU_EXCHANGE_FOREVER;
    x.wait_fd = -1;
    /* A doorbell would wake it. */
    while (read(ctx->fd, &event, sizeof(event)) > 0)
        ;
    fd = arm_fault(*(unsigned *)arg);
    ret = engine_ioctl(ctx, VGPU_ENGINE_QUEUE_EXCHANGE, &x);
    disarm_fault(fd);
    if (!ret && x.state & VGPU_EXCHANGE_BROKEN)
        return -EPROTO;
    if (!ret && x.nrequests)
        assert_ok(push_ok(ctx, x.epoch, request.token));
    engine_serve_queue(ctx, VGPU_QUEUE_CONTROL);
    return 0;
}

/*
 * An engine that gets no memory for a request looks again. The guest does not ring for what it has
 * sent already.
 */
static void test_exchange(void)
{
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};

    require_fault_injection();
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_QUEUES);
    for (unsigned n = 1; n < 20; n++) {
        uint32_t len;
        void *resp;
        int ret;

        for (int i = 0; i < 2; i++)
            assert_ok(guest_submit(&tb->guest, VGPU_QUEUE_CONTROL, &req, sizeof(req), sizeof(req),
                                   &resp));
        ret = engine_peer_call(tb->engine, call_exchange, &n, sizeof(n));
        if (ret == -EPROTO) {
            guest_up(&tb->guest, GUEST_FEATURES);
            continue;
        }
        assert_ok(ret);
        for (int i = 0; i < 2; i++)
            assert_ok(
                guest_queue_wait(&tb->guest.queue[VGPU_QUEUE_CONTROL], &len, GUEST_TIMEOUT_MS));
    }
    atomic_store(&tb->engine->state->hold, 0);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

/* A vGPU that is saved, and what was saved. */
typedef struct {
    Testbed *tb;
    int fd;
    uint8_t data[0x10000];
    size_t size;
} StateArg;

static void undo_save(void *arg)
{
    StateArg *a = arg;
    int fd;

    close(a->fd);
    assert_ok(vmm_migration_set_state(&a->tb->dev, VFIO_DEVICE_STATE_RUNNING, &fd));
}

/* Where PRE_COPY fails later, when the VMM reads. */
static int run_save(void *arg)
{
    StateArg *a = arg;
    int fd, ret = vmm_migration_set_state(&a->tb->dev, VFIO_DEVICE_STATE_PRE_COPY, &a->fd);
    ssize_t n;

    if (!ret)
        ret = vmm_migration_set_state(&a->tb->dev, VFIO_DEVICE_STATE_STOP_COPY, &fd);
    a->size = 0;
    while (!ret && (n = read(a->fd, a->data + a->size, sizeof(a->data) - a->size))) {
        if (n < 0)
            ret = -errno;
        else
            a->size += (size_t)n;
    }
    if (ret)
        undo_save(a);
    return ret;
}

static void undo_load(void *arg)
{
    StateArg *a = arg;

    close(a->fd);
    assert_ok(vmm_device_reset(&a->tb->dev));
}

static int run_load(void *arg)
{
    StateArg *a = arg;
    int fd, ret = vmm_migration_set_state(&a->tb->dev, VFIO_DEVICE_STATE_RESUMING, &a->fd);

    if (!ret && write(a->fd, a->data, a->size) < 0)
        ret = -errno;
    if (!ret)
        ret = vmm_migration_set_state(&a->tb->dev, VFIO_DEVICE_STATE_RUNNING, &fd);
    if (ret)
        undo_load(a);
    return ret;
}

/* A VM that can't be saved goes on; one that can't be loaded is as after a reset. */
static void test_migration(void)
{
    const Operation saving = {run_save, undo_save}, loading = {run_load, undo_load};
    static StateArg arg;

    require_fault_injection();
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    arg.tb = tb;
    fail_each(&saving, &arg);
    assert_round_trip(tb, 1);
    fail_each(&saving, &arg);
    fail_each(&loading, &arg);
    vmm_config_write(&tb->dev, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 2);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add_limit("/faults/add-gpu", test_add_gpu, 300);
    driver_test_add_limit("/faults/set-types", test_set_types, 300);
    driver_test_add_limit("/faults/create", test_create, 300);
    driver_test_add_limit("/faults/attach", test_attach, 300);
    driver_test_add_limit("/faults/open", test_open, 300);
    driver_test_add_limit("/faults/publish", test_publish, 300);
    driver_test_add_limit("/faults/touch", test_touch, 300);
    driver_test_add_limit("/faults/pin", test_pin, 300);
    driver_test_add_limit("/faults/requests", test_requests, 300);
    driver_test_add_limit("/faults/exchange", test_exchange, 300);
    driver_test_add_limit("/faults/migration", test_migration, 300);
    return driver_test_run();
}
