/* SPDX-License-Identifier: MIT */
/*
 * The engine's life: attach, ready, failure, kill -9. A guest gets errors, never silence and never
 * wrong data, until it resets the device; then the next engine serves it.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_buffer.h"
#include "testbed.h"

#define CONTROL   VGPU_QUEUE_CONTROL
#define IN_FLIGHT 20

static void kill_engine(Testbed *tb)
{
    engine_peer_kill(tb->engine);
    tb->engine = NULL;
}

static void fill_fenced(struct virtio_gpu_ctrl_hdr *req, unsigned i)
{
    memset(req, 0, sizeof(*req));
    req->type = VIRTIO_GPU_CMD_SUBMIT_3D;
    req->ctx_id = 9;
    if (i % 3) {
        req->flags = VIRTIO_GPU_FLAG_FENCE;
        req->fence_id = 5000 + i;
    }
    if (i % 3 == 2) {
        req->flags |= VIRTIO_GPU_FLAG_INFO_RING_IDX;
        req->ring_idx = 1;
    }
}

static void assert_error_answer(const struct virtio_gpu_ctrl_hdr *resp, unsigned i)
{
    struct virtio_gpu_ctrl_hdr req;

    fill_fenced(&req, i);
    g_assert_cmphex(resp->type, ==, VIRTIO_GPU_RESP_ERR_UNSPEC);
    g_assert_cmphex(resp->flags, ==, req.flags);
    g_assert_cmpuint(resp->fence_id, ==, req.fence_id);
    if (req.flags & VIRTIO_GPU_FLAG_INFO_RING_IDX)
        g_assert_cmpuint(resp->ring_idx, ==, req.ring_idx);
}

/* The engine has taken half of them, the other half is still in the ring. */
static void test_in_flight(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    GuestQueue *q = &tb->guest.queue[CONTROL];
    struct virtio_gpu_ctrl_hdr req, *resp[IN_FLIGHT];
    int by_head[GUEST_QUEUE_SIZE];

    guest_queue_want_interrupt(q, true);
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_ANSWERS);
    for (unsigned i = 0; i < IN_FLIGHT; i++) {
        int head;

        if (i == IN_FLIGHT / 2) {
            g_assert_true(wait_until(atomic_load(&tb->engine->state->pops) == IN_FLIGHT / 2,
                                     GUEST_TIMEOUT_MS));
            engine_peer_hold(tb->engine, ENGINE_HOLD_QUEUES | ENGINE_HOLD_EVENTS);
        }
        fill_fenced(&req, i);
        head = guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req), (void **)&resp[i]);
        assert_ok(head);
        by_head[head] = (int)i;
    }
    kill_engine(tb);
    for (unsigned i = 0; i < IN_FLIGHT; i++) {
        uint32_t len = 0;
        int head = guest_queue_wait(q, &len, GUEST_TIMEOUT_MS);

        assert_ok(head);
        g_assert_cmpuint(len, ==, sizeof(req));
        assert_error_answer(resp[by_head[head]], (unsigned)by_head[head]);
    }
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[1], 5000), >, 0);
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[0], 5000), >, 0);
    g_assert_true(guest_status(&tb->guest) & VIRTIO_CONFIG_S_NEEDS_RESET);
    for (unsigned i = 0; i < 3 * GUEST_QUEUE_SIZE; i++)
        assert_answered_with_error(tb, i + 1);
}

static void assert_engine_is_back(Testbed *tb)
{
    struct vgpu_engine_info info;

    tb->engine = engine_peer_start(tb->uuid, 0);
    assert_ok(peer_info(tb->engine, &info));
    g_assert_true(info.state & VGPU_STATE_LOST);
    /* The new engine must not get anything of the old life. */
    assert_answered_with_error(tb, 77);
    g_assert_cmpuint(atomic_load(&tb->engine->state->pops), ==, 0);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_ok(peer_info(tb->engine, &info));
    g_assert_false(info.state & VGPU_STATE_LOST);
    assert_round_trip(tb, 78);
}

static void test_new_engine(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    for (unsigned i = 0; i < 4; i++) {
        assert_round_trip(tb, 1);
        kill_engine(tb);
        assert_answered_with_error(tb, 2);
        assert_engine_is_back(tb);
    }
}

/* An engine that ends by itself, and one that only closes its file. */
static int call_close(EngineCtx *ctx, void *arg)
{
    (void)arg;
    close(ctx->fd);
    ctx->fd = -1;
    return 0;
}

static void test_closed_file(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    assert_ok(engine_peer_call(tb->engine, call_close, NULL, 0));
    assert_answered_with_error(tb, 1);
    engine_peer_stop(tb->engine);
    assert_engine_is_back(tb);
    engine_peer_stop(tb->engine);
    assert_answered_with_error(tb, 2);
    assert_engine_is_back(tb);
}

/* Another process still holds the engine's file: the engine ends with its address space. */
static int call_fork_holder(EngineCtx *ctx, void *arg)
{
    pid_t *pid = arg;

    (void)ctx;
    *pid = fork();
    if (*pid == 0) {
        sleep(60);
        _exit(0);
    }
    return *pid < 0 ? -errno : 0;
}

static void test_file_outlives(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    pid_t holder = 0;

    assert_ok(engine_peer_call(tb->engine, call_fork_holder, &holder, sizeof(holder)));
    kill_engine(tb);
    assert_answered_with_error(tb, 1);
    assert_engine_is_back(tb);
    kill(holder, SIGKILL);
    assert_round_trip(tb, 2);
}

/* What a child of the engine may do with the inherited file: nothing. */
static int call_from_child(EngineCtx *ctx, void *arg)
{
    struct vgpu_engine_ready ready = {.argsz = sizeof(ready), .num_capsets = 1};
    struct vgpu_engine_epoch done = {.argsz = sizeof(done)};
    int status;
    pid_t pid = fork();

    (void)arg;
    if (pid == 0)
        _exit(engine_ioctl(ctx, VGPU_ENGINE_READY, &ready) == -EPERM &&
                      engine_ioctl(ctx, VGPU_ENGINE_RESET_DONE, &done) == -EPERM
                  ? 0
                  : 1);
    waitpid(pid, &status, 0);
    return status ? -EIO : 0;
}

static void test_child_of_engine(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    assert_ok(engine_peer_call(tb->engine, call_from_child, NULL, 0));
    assert_round_trip(tb, 1);
}

/* Rings in shared memory stay readable until the reset; device memory is removed at once. */
static void test_window_after_death(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    bool udmabuf = access("/dev/udmabuf", R_OK | W_OK) == 0;
    volatile uint8_t *window = testbed_window(tb);
    uint64_t addr;

    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, 16 * PAGE_BYTES, &addr));
    assert_ok(peer_publish(tb->engine, 0, 16 * PAGE_BYTES, addr));
    if (udmabuf) {
        assert_ok(peer_alloc(tb->engine, MEMORY_UDMABUF, 16 * PAGE_BYTES, &addr));
        assert_ok(peer_publish(tb->engine, MIB, 16 * PAGE_BYTES, addr));
    }
    for (uint64_t page = 0; page < 16; page++) {
        assert_window_pattern(tb, page * PAGE_BYTES, page);
        if (udmabuf)
            assert_window_pattern(tb, MIB + page * PAGE_BYTES, page);
    }
    kill_engine(tb);
    assert_answered_with_error(tb, 1);
    for (uint64_t page = 0; page < 16; page++) {
        assert_window_pattern(tb, page * PAGE_BYTES, page);
        assert_window_blank(tb, MIB + page * PAGE_BYTES);
    }
    /* A guest that continues to write into its ring is not stopped. */
    *(volatile uint32_t *)window = 0x12345678;
    g_assert_cmphex(*(volatile uint32_t *)window, ==, 0x12345678);
    guest_reset(&tb->guest);
    for (uint64_t page = 0; page < 16; page++)
        assert_window_blank(tb, page * PAGE_BYTES);
}

/*
 * A dead engine's device memory is given back at once: the guest may never reset the device, and
 * others want the GPU's memory.
 */
static void test_device_memory_freed(void)
{
    g_autoptr(Testbed) tb = NULL;
    uint64_t addr;
    int before;

    test_buffer_faults(0, 0);
    before = test_buffer_count();
    tb = testbed_new(TESTBED_AT_GUEST);
    assert_ok(peer_alloc(tb->engine, MEMORY_TEST_BUFFER, 16 * PAGE_BYTES, &addr));
    assert_ok(peer_publish(tb->engine, 0, 16 * PAGE_BYTES, addr));
    assert_window_pattern(tb, 0, 0);
    assert_ok(peer_alloc(tb->engine, MEMORY_TEST_BUFFER, 16 * PAGE_BYTES, &addr));
    assert_ok(peer_publish(tb->engine, MIB, 16 * PAGE_BYTES, addr));
    g_assert_cmpint(test_buffer_count(), ==, before + 2);
    kill_engine(tb);
    assert_answered_with_error(tb, 1);
    g_assert_true(wait_until(test_buffer_count() == before, GUEST_TIMEOUT_MS));
    assert_window_blank(tb, 0);
    assert_window_blank(tb, MIB);
}

/* Pages that were never touched before the death are not available after it: blank, no signal. */
static void test_untouched_after_death(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t addr;

    testbed_window(tb);
    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, 64 * PAGE_BYTES, &addr));
    assert_ok(peer_publish(tb->engine, 0, 64 * PAGE_BYTES, addr));
    assert_window_pattern(tb, 0, 0);
    kill_engine(tb);
    assert_answered_with_error(tb, 1);
    assert_window_pattern(tb, 0, 0);
    assert_window_blank(tb, 63 * PAGE_BYTES);
    assert_engine_is_back(tb);
    assert_window_blank(tb, 0);
}

static void test_guest_comes_without_engine(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_OPEN);

    kill_engine(tb);
    guest_probe(&tb->guest, &tb->dev, &tb->ram);
    tb->stage = TESTBED_AT_GUEST;
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_answered_with_error(tb, 1);
    assert_engine_is_back(tb);
}

static void test_fail(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    VmmContainer container;
    VmmDevice dev;
    int64_t start;

    assert_ok(peer_fail(tb->engine, "no Vulkan device of this GPU"));
    assert_answered_with_error(tb, 1);
    engine_peer_stop(tb->engine);
    tb->engine = NULL;
    testbed_close_vmm(tb);

    /* The next VMM gets the error at once. */
    start = now_ms();
    assert_ok(vmm_container_open(&container));
    assert_fails(vmm_vgpu_open(&container, &dev, tb->uuid), EIO);
    g_assert_cmpint(now_ms() - start, <, 5000);
    vmm_container_close(&container);

    tb->engine = engine_peer_start(tb->uuid, 0);
    testbed_advance(tb, TESTBED_AT_GUEST);
    assert_round_trip(tb, 2);
}

static int call_fail_raw(EngineCtx *ctx, void *arg)
{
    return engine_ioctl(ctx, VGPU_ENGINE_FAIL, arg);
}

/* The reason is logged, without control characters. */
static void test_fail_reason(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct vgpu_engine_fail fail = {.argsz = sizeof(fail), .reason = "two\nlines"};

    assert_fails(engine_peer_call(tb->engine, call_fail_raw, &fail, sizeof(fail)), EINVAL);
    strcpy(fail.reason, "\x1b[31mred");
    assert_fails(engine_peer_call(tb->engine, call_fail_raw, &fail, sizeof(fail)), EINVAL);
    assert_round_trip(tb, 1);
}

/* Opened without an engine: a bounded wait, then a clear errno. */
static void test_open_without_engine(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    VmmContainer container;
    VmmDevice dev;
    int64_t start = now_ms();

    assert_ok(mdev_set_engine_timeout_ms(1500));
    assert_ok(vmm_container_open(&container));
    assert_fails(vmm_vgpu_open(&container, &dev, tb->uuid), ETIMEDOUT);
    g_assert_cmpint(now_ms() - start, >=, 1400);
    g_assert_cmpint(now_ms() - start, <, 20000);
    vmm_container_close(&container);
}

/* The VMM is first: it waits for the engine. */
static void test_open_waits(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    EnginePeer *engine;
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        VmmContainer container;
        VmmDevice dev;

        assert_ok(vmm_container_open(&container));
        assert_ok(vmm_vgpu_open(&container, &dev, tb->uuid));
        _exit(0);
    }
    g_usleep(500000);
    engine = engine_peer_start(tb->uuid, ENGINE_NOT_READY);
    g_usleep(500000);
    g_assert_cmpint(waitpid(pid, &status, WNOHANG), ==, 0);
    assert_fails(peer_ready(engine, 0), EINVAL);
    assert_fails(peer_ready(engine, 64), EINVAL);
    assert_ok(peer_ready(engine, 3));
    assert_fails(peer_ready(engine, 3), EALREADY);
    waitpid(pid, &status, 0);
    g_assert_cmpint(status, ==, 0);
    engine_peer_stop(engine);
}

/* A VMM that is killed while it waits in open. */
static void test_open_killed(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    pid_t pid = fork();

    if (pid == 0) {
        VmmContainer container;
        VmmDevice dev;

        assert_ok(vmm_container_open(&container));
        vmm_vgpu_open(&container, &dev, tb->uuid);
        _exit(0);
    }
    g_usleep(500000);
    kill(pid, SIGKILL);
    g_assert_true(wait_until(waitpid(pid, NULL, WNOHANG) == pid, 5000));
}

static void test_attach_rules(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_ENGINE);
    struct vgpu_engine_info info = {.argsz = sizeof(info)};
    g_autofree char *node = g_build_filename("/dev/vgpu", tb->uuid, NULL);
    g_autofree char *text = NULL;
    int error, fd;

    g_assert_null(engine_peer_try_start(tb->uuid, 0, &error));
    g_assert_cmpint(error, ==, -EBUSY);
    assert_ok(peer_info(tb->engine, &info));
    g_assert_cmpuint(info.api_version, ==, VGPU_API_VERSION);
    g_assert_cmpstr(info.gpu, ==, TESTBED_GPU);
    g_assert_cmpstr(info.type, ==, TESTBED_TYPE);
    g_assert_cmpuint(info.num_queues, ==, VGPU_NUM_QUEUES);
    text = g_strdup_printf("%02x%02x%02x%02x-%02x%02x", info.uuid[0], info.uuid[1], info.uuid[2],
                           info.uuid[3], info.uuid[4], info.uuid[5]);
    g_assert_true(g_str_has_prefix(tb->uuid, text));

    /* Without being the engine: INFO, or nothing if the node accepts one opener only. */
    fd = open(node, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        g_assert_cmpint(errno, ==, EBUSY);
        return;
    }
    g_assert_cmpint(ioctl(fd, VGPU_ENGINE_INFO, &info), ==, 0);
    g_assert_cmpint(ioctl(fd, VGPU_ENGINE_FAIL, &info), ==, -1);
    g_assert_cmpint(read(fd, &info, sizeof(info)), ==, -1);
    close(fd);
}

/* Kill and restart while the guest never stops asking: each request gets exactly one answer. */
static void test_under_load(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    for (unsigned round = 0; round < 8; round++) {
        pid_t killer = fork();
        unsigned errors = 0;

        if (killer == 0) {
            g_usleep(20000 + round * 7000);
            kill(tb->engine->pid, SIGKILL);
            _exit(0);
        }
        for (unsigned i = 1; errors < 20; i++) {
            struct virtio_gpu_ctrl_hdr req = {
                .type = VIRTIO_GPU_CMD_SUBMIT_3D, .flags = VIRTIO_GPU_FLAG_FENCE, .fence_id = i};
            struct virtio_gpu_ctrl_hdr resp = {0};

            assert_ok(
                guest_request(&tb->guest, CONTROL, &req, sizeof(req), &resp, sizeof(resp), NULL));
            g_assert_cmpuint(resp.fence_id, ==, i);
            errors += resp.type != VIRTIO_GPU_RESP_OK_NODATA;
        }
        waitpid(killer, NULL, 0);
        kill_engine(tb);
        tb->guest.ram_used = 0;
        tb->engine = engine_peer_start(tb->uuid, 0);
        guest_up(&tb->guest, GUEST_FEATURES);
        assert_round_trip(tb, 1);
    }
}

#define AMID_ROUNDS 12

/*
 * Requests that touch a new page of guest memory each, so that a kill hits the engine in their
 * middle.
 */
static void submit_wide(Testbed *tb, unsigned count)
{
    GuestQueue *q = &tb->guest.queue[CONTROL];

    for (unsigned i = 0; i < count; i++) {
        struct virtio_gpu_ctrl_hdr *req;
        GuestBuf out = {.len = sizeof(*req)}, in = {.len = sizeof(*req)};

        req = guest_alloc(&tb->guest, PAGE_BYTES, PAGE_BYTES, &out.iova);
        req->type = VIRTIO_GPU_CMD_SUBMIT_3D;
        guest_alloc(&tb->guest, PAGE_BYTES, PAGE_BYTES, &in.iova);
        assert_ok(guest_queue_add(q, &out, 1, &in, 1, false));
    }
    guest_queue_kick_always(q);
}

/* Killed in the middle of taking and answering: the guest's rings must not count as broken. */
static void test_amid_requests(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    for (unsigned round = 0; round < AMID_ROUNDS; round++) {
        unsigned long before = atomic_load(&tb->engine->state->pops);
        uint32_t len;

        submit_wide(tb, GUEST_QUEUE_SIZE / 2);
        while (atomic_load(&tb->engine->state->pops) < before + 1 + round)
            ;
        kill_engine(tb);
        for (unsigned i = 0; i < GUEST_QUEUE_SIZE / 2; i++) {
            assert_ok(guest_queue_wait(&tb->guest.queue[CONTROL], &len, GUEST_TIMEOUT_MS));
            g_assert_cmpuint(len, ==, sizeof(struct virtio_gpu_ctrl_hdr));
        }
        tb->guest.ram_used = 0;
        tb->engine = engine_peer_start(tb->uuid, 0);
        guest_up(&tb->guest, GUEST_FEATURES);
    }
}

#define FAULTS_SIZE (512 * PAGE_BYTES)

typedef struct {
    volatile uint32_t *window;
    atomic_bool stop;
} Toucher;

/*
 * A page of each range that one fault maps, so that nearly each access is a fault with a look-up.
 */
static void *touch_all(void *data)
{
    Toucher *toucher = data;
    uint32_t sum = 0;

    for (uint64_t at = 0; !atomic_load(&toucher->stop); at = (at + 16 * PAGE_BYTES) % FAULTS_SIZE)
        sum += toucher->window[at / 4];
    return (void *)(uintptr_t)sum;
}

/*
 * One processor of the VM is in the middle of a fault when the engine dies and another processor
 * resets the device: the fault may hold the last reference to the engine's address space.
 */
static void test_fault_meanwhile(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    Toucher toucher = {.window = (volatile uint32_t *)testbed_window(tb)};
    uint64_t addr;

    for (unsigned round = 0; round < 3; round++) {
        GThread *thread;

        assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, FAULTS_SIZE, &addr));
        assert_ok(peer_publish(tb->engine, 0, FAULTS_SIZE, addr));
        atomic_store(&toucher.stop, false);
        thread = g_thread_new("guest", touch_all, &toucher);
        g_usleep(500 * round);
        kill_engine(tb);
        guest_reset(&tb->guest);
        g_usleep(10000);
        atomic_store(&toucher.stop, true);
        g_thread_join(thread);
        tb->engine = engine_peer_start(tb->uuid, 0);
        guest_up(&tb->guest, GUEST_FEATURES);
        assert_round_trip(tb, round + 1);
    }
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/engine-death/in-flight", test_in_flight);
    driver_test_add("/engine-death/new-engine", test_new_engine);
    driver_test_add("/engine-death/closed-file", test_closed_file);
    driver_test_add("/engine-death/file-outlives", test_file_outlives);
    driver_test_add("/engine-death/child-of-engine", test_child_of_engine);
    driver_test_add("/engine-death/window", test_window_after_death);
    driver_test_add("/engine-death/device-memory-freed", test_device_memory_freed);
    driver_test_add("/engine-death/window-untouched", test_untouched_after_death);
    driver_test_add("/engine-death/guest-comes-without", test_guest_comes_without_engine);
    driver_test_add("/engine-death/fail", test_fail);
    driver_test_add("/engine-death/fail-reason", test_fail_reason);
    driver_test_add("/engine-death/open-without-engine", test_open_without_engine);
    driver_test_add("/engine-death/open-waits", test_open_waits);
    driver_test_add("/engine-death/open-killed", test_open_killed);
    driver_test_add("/engine-death/attach-rules", test_attach_rules);
    driver_test_add("/engine-death/under-load", test_under_load);
    driver_test_add("/engine-death/amid-requests", test_amid_requests);
    driver_test_add_limit("/engine-death/fault-meanwhile", test_fault_meanwhile, 300);
    return driver_test_run();
}
