/* SPDX-License-Identifier: MIT */
/* Resets: by the guest, by the VMM, by the VMM's end; with engines that answer, late or never. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "held_mm.h"
#include "testbed.h"

#define CONTROL VGPU_QUEUE_CONTROL

/* The guest's reset, which takes until the engine has let go, on a thread as a processor of the VM
 * has. */
typedef struct {
    Testbed *tb;
    pthread_t thread;
    atomic_int done;
} ResetThread;

static void *reset_thread(void *data)
{
    ResetThread *reset = data;

    guest_reset(&reset->tb->guest);
    atomic_store(&reset->done, 1);
    return NULL;
}

static void start_reset(ResetThread *reset, Testbed *tb)
{
    unsigned long before = atomic_load(&tb->engine->state->resets);

    reset->tb = tb;
    atomic_store(&reset->done, 0);
    g_assert_cmpint(pthread_create(&reset->thread, NULL, reset_thread, reset), ==, 0);
    g_assert_true(wait_until(atomic_load(&tb->engine->state->resets) > before, GUEST_TIMEOUT_MS));
}

static void join_reset(ResetThread *reset)
{
    g_assert_true(wait_until(atomic_load(&reset->done), GUEST_TIMEOUT_MS));
    pthread_join(reset->thread, NULL);
}

static void finish_reset(ResetThread *reset)
{
    join_reset(reset);
    g_assert_cmpint(guest_status(&reset->tb->guest), ==, 0);
}

static void test_waits_for_engine(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t epoch = peer_epoch(tb->engine);
    ResetThread reset;

    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_RESET);
    start_reset(&reset, tb);
    g_assert_cmpuint(atomic_load(&tb->engine->state->reset_epoch), ==, epoch);
    g_usleep(700000);
    g_assert_cmpint(atomic_load(&reset.done), ==, 0);
    assert_fails(peer_reset_done(tb->engine, epoch + 1), ESTALE);
    g_assert_cmpint(atomic_load(&reset.done), ==, 0);
    assert_ok(peer_reset_done(tb->engine, epoch));
    finish_reset(&reset);
    g_assert_cmpuint(peer_epoch(tb->engine), >, epoch);
    assert_fails(peer_reset_done(tb->engine, epoch), ESTALE);

    atomic_store(&tb->engine->state->hold, 0);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

/* The driver itself removes window and guest memory, before the engine has answered. */
/*
 * A processor that writes 0 holds the whole VMM while that write lasts. So it comes back, and the
 * status says when the reset is done. Until then writes are void.
 */
static void test_does_not_block(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t epoch = peer_epoch(tb->engine);
    uint8_t before = guest_status(&tb->guest);
    int64_t start;

    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_RESET);
    start = now_ms();
    guest_set_status(&tb->guest, 0);
    g_assert_cmpint(now_ms() - start, <, 2000);
    g_assert_cmphex(guest_status(&tb->guest), ==, before);
    guest_set_status(&tb->guest, VIRTIO_CONFIG_S_FAILED);
    g_assert_cmphex(guest_status(&tb->guest), ==, before);
    start = now_ms();
    guest_set_status(&tb->guest, 0);
    g_assert_cmpint(now_ms() - start, <, 2000);
    g_assert_cmpuint(atomic_load(&tb->engine->state->resets), ==, 1);

    atomic_store(&tb->engine->state->hold, 0);
    assert_ok(peer_reset_done(tb->engine, epoch));
    g_assert_cmphex(guest_status(&tb->guest), ==, 0);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

/*
 * The VM's address space is held, so nothing can be unpinned; nothing here may map memory
 * meanwhile. The guest's write returns, its memory is out of the engine, and the reset is done when
 * all is unpinned.
 */
static void test_unpins_later(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct vgpu_mem_entry entry = {TESTBED_RAM_IOVA + 4 * MIB, 256 * PAGE_BYTES};
    volatile uint8_t *seen = tb->ram.mem + 4 * MIB;
    uint8_t before = guest_status(&tb->guest);
    pthread_t holder;
    uint64_t addr;
    int64_t start;

    held_mm_need();
    if (vmm_by_iommufd())
        driver_test_skip("iommufd unpins without the VMM's address space");
    *seen = 1;
    assert_ok(peer_pin(tb->engine, &entry, 1, VGPU_MEM_WRITE, NULL, &addr));
    assert_ok(peer_poke(tb->engine, addr, "\2", 1));
    g_assert_cmpuint(*seen, ==, 2);
    g_assert_cmpint(pthread_create(&holder, NULL, held_mm_thread, NULL), ==, 0);
    held_mm_wait();
    start = now_ms();
    guest_set_status(&tb->guest, 0);
    g_assert_cmpint(now_ms() - start, <, 1500);
    assert_ok(peer_poke(tb->engine, addr, "\3", 1));
    g_assert_cmpuint(*seen, ==, 2);
    g_assert_cmphex(guest_status(&tb->guest), ==, before);
    pthread_join(holder, NULL);
    g_assert_true(wait_until(guest_status(&tb->guest) == 0, GUEST_TIMEOUT_MS));
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, 0);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

/* A reset that the engine does not answer in time must not write to the rings that the guest has
 * given up. */
static void test_leaves_old_rings(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    void *resp;

    assert_ok(mdev_set_reset_timeout_ms(300));
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_RESET | ENGINE_HOLD_QUEUES);
    for (unsigned i = 0; i < 4; i++)
        assert_ok(guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req), &resp));
    guest_reset(&tb->guest);
    g_assert_cmpuint(tb->guest.queue[CONTROL].used->idx, ==, 0);
}

static void test_takes_all_back(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t epoch = peer_epoch(tb->engine), addr;
    ResetThread reset;

    testbed_window(tb);
    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, 8 * PAGE_BYTES, &addr));
    assert_ok(peer_publish(tb->engine, 0, 8 * PAGE_BYTES, addr));
    assert_window_pattern(tb, PAGE_BYTES, 1);
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_RESET);
    start_reset(&reset, tb);
    for (uint64_t page = 0; page < 8; page++)
        assert_window_blank(tb, page * PAGE_BYTES);
    assert_ok(peer_reset_done(tb->engine, epoch));
    finish_reset(&reset);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/window_published_bytes"), ==, 0);
    assert_window_blank(tb, 0);
}

typedef struct {
    uint64_t epoch;
    uint64_t addr;
    int32_t publish, unpublish, pin, unpin, pop;
    int32_t push[4];
} StaleCall;

/* Everything that the engine could still do for the epoch that is over. */
static int call_stale(EngineCtx *ctx, void *arg)
{
    StaleCall *call = arg;
    struct vgpu_mem_entry entry = {TESTBED_RAM_IOVA, PAGE_BYTES};
    struct vgpu_window_range range = {
        .argsz = sizeof(range), .epoch = call->epoch, .size = PAGE_BYTES, .addr = call->addr};
    struct vgpu_mem_pin pin = {
        .argsz = sizeof(pin), .epoch = call->epoch, .nentries = 1, .entries = (uintptr_t)&entry};
    struct vgpu_mem_unpin unpin = {.argsz = sizeof(unpin), .epoch = call->epoch};
    struct vgpu_queue_request pop;
    uint8_t buf[64] = {0};

    call->publish = engine_ioctl(ctx, VGPU_ENGINE_WINDOW_PUBLISH, &range);
    range.addr = 0;
    call->unpublish = engine_ioctl(ctx, VGPU_ENGINE_WINDOW_UNPUBLISH, &range);
    call->pin = engine_ioctl(ctx, VGPU_ENGINE_MEM_PIN, &pin);
    call->unpin = engine_ioctl(ctx, VGPU_ENGINE_MEM_UNPIN, &unpin);
    call->pop = engine_pop(ctx, CONTROL, call->epoch, buf, sizeof(buf), &pop);
    for (unsigned i = 0; i < G_N_ELEMENTS(call->push); i++)
        call->push[i] = engine_push(ctx, CONTROL, call->epoch, ctx->held[i].token, buf, 24);
    return 0;
}

static void test_stale_calls(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    StaleCall call = {.epoch = peer_epoch(tb->engine)};
    void *resp;

    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, PAGE_BYTES, &call.addr));
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_ANSWERS);
    for (unsigned i = 0; i < 4; i++)
        assert_ok(guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req), &resp));
    g_assert_true(wait_until(atomic_load(&tb->engine->state->pops) >= 4, GUEST_TIMEOUT_MS));
    guest_up(&tb->guest, GUEST_FEATURES);

    assert_ok(engine_peer_call(tb->engine, call_stale, &call, sizeof(call)));
    g_assert_cmpint(call.publish, ==, -ESTALE);
    g_assert_cmpint(call.unpublish, ==, -ESTALE);
    g_assert_cmpint(call.pin, ==, -ESTALE);
    g_assert_cmpint(call.unpin, ==, -ESTALE);
    g_assert_cmpint(call.pop, ==, -ESTALE);
    for (unsigned i = 0; i < 4; i++)
        g_assert_cmpint(call.push[i], ==, -ESTALE);
    /* Nothing of the old life appears on the new rings. */
    g_assert_cmpuint(tb->guest.queue[CONTROL].used->idx, ==, 0);
    atomic_store(&tb->engine->state->hold, 0);
    assert_round_trip(tb, 1);
}

typedef struct {
    uint64_t over;
    int32_t before_done, after_done;
} PopInReset;

/* Like an engine that is faster than the reset: it releases the epoch, and polls at once. */
static int call_pop_in_reset(EngineCtx *ctx, void *arg)
{
    PopInReset *call = arg;
    uint64_t epoch = engine_epoch(ctx);
    struct vgpu_engine_epoch done = {.argsz = sizeof(done), .epoch = call->over};
    struct vgpu_queue_request pop;
    uint8_t buf[64];

    call->before_done = engine_pop(ctx, CONTROL, epoch, buf, sizeof(buf), &pop);
    if (engine_ioctl(ctx, VGPU_ENGINE_RESET_DONE, &done))
        return -EIO;
    call->after_done = engine_pop(ctx, CONTROL, epoch, buf, sizeof(buf), &pop);
    return 0;
}

/*
 * While the guest waits, the registers are still the old life's: the new epoch must not use their
 * rings.
 */
static void test_old_rings(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    PopInReset call = {.over = peer_epoch(tb->engine)};
    ResetThread reset;
    void *resp;

    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_RESET | ENGINE_HOLD_QUEUES);
    for (unsigned i = 0; i < 4; i++)
        assert_ok(guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req), &resp));
    start_reset(&reset, tb);
    assert_ok(engine_peer_call(tb->engine, call_pop_in_reset, &call, sizeof(call)));
    g_assert_cmpint(call.before_done, ==, -EAGAIN);
    g_assert_cmpint(call.after_done, ==, -EAGAIN);
    finish_reset(&reset);

    atomic_store(&tb->engine->state->hold, 0);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

/* Requests that the old life left unanswered must not come back as the new one's. */
static void test_in_flight(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    void *resp;

    for (unsigned round = 0; round < 5; round++) {
        atomic_store(&tb->engine->state->hold, ENGINE_HOLD_ANSWERS);
        for (unsigned i = 0; i < 10; i++)
            assert_ok(guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req), &resp));
        atomic_store(&tb->engine->state->hold, 0);
        guest_up(&tb->guest, GUEST_FEATURES);
        assert_round_trip(tb, round + 1);
    }
}

/* An engine that never answers: the guest waits for a bounded time, then continues with errors. */
static void test_engine_never_answers(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    g_autofree char *failure = NULL;
    int64_t start;
    EnginePeer *stuck = tb->engine;

    assert_ok(mdev_set_reset_timeout_ms(1500));
    atomic_store(&stuck->state->hold, ENGINE_HOLD_RESET);
    start = now_ms();
    guest_reset(&tb->guest);
    g_assert_cmpint(now_ms() - start, >=, 1400);
    g_assert_cmpint(now_ms() - start, <, 15000);
    failure = mdev_attr(tb->uuid, "vgpu/failure");
    g_assert_cmpstr(failure, !=, "");

    guest_up(&tb->guest, GUEST_FEATURES);
    assert_answered_with_error(tb, 1);
    g_assert_cmpint(peer_reset_done(stuck, atomic_load(&stuck->state->reset_epoch)), <, 0);

    /* A new one attaches, and serves from the next reset on. */
    tb->engine = engine_peer_start(tb->uuid, 0);
    assert_answered_with_error(tb, 2);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 3);
    engine_peer_stop(stuck);
    assert_round_trip(tb, 4);
}

/*
 * An engine that ends in the reset, instead of answering it: the guest waits for the next one,
 * which systemd starts, because a driver that is up before it is there gets errors until it resets
 * again.
 */
static void test_engine_dies_meanwhile(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    ResetThread reset;

    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_RESET);
    start_reset(&reset, tb);
    engine_peer_kill(tb->engine);
    g_usleep(1000000);
    g_assert_cmpint(atomic_load(&reset.done), ==, 0);
    tb->engine = engine_peer_start(tb->uuid, 0);
    finish_reset(&reset);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

/* That one gets no guest memory before the guest's driver is up, ready or not. */
static void test_next_engine_pins(void)
{
    const struct vgpu_mem_entry entry = {TESTBED_RAM_IOVA + 8 * MIB, PAGE_BYTES};
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t offset, addr;
    ResetThread reset;

    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_RESET);
    start_reset(&reset, tb);
    engine_peer_kill(tb->engine);
    tb->engine = engine_peer_start(tb->uuid, ENGINE_NOT_READY);
    g_assert_cmpint(peer_pin(tb->engine, &entry, 1, VGPU_MEM_WRITE, &offset, &addr), ==, -ESTALE);
    assert_ok(peer_ready(tb->engine, ENGINE_NUM_CAPSETS));
    finish_reset(&reset);
    g_assert_cmpint(peer_pin(tb->engine, &entry, 1, VGPU_MEM_WRITE, &offset, &addr), ==, -ESTALE);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_ok(peer_pin(tb->engine, &entry, 1, VGPU_MEM_WRITE, &offset, &addr));
    assert_round_trip(tb, 1);
}

/* ... but no longer than a reset lasts. */
static void test_engine_stays_away(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    ResetThread reset;
    int64_t start = now_ms();

    assert_ok(mdev_set_reset_timeout_ms(2000));
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_RESET);
    start_reset(&reset, tb);
    engine_peer_kill(tb->engine);
    tb->engine = NULL;
    finish_reset(&reset);
    g_assert_cmpint(now_ms() - start, >=, 1900);
    g_assert_cmpint(now_ms() - start, <, 15000);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_answered_with_error(tb, 1);
}

static void next_engine(Testbed *tb)
{
    engine_peer_kill(tb->engine);
    tb->engine = NULL;
    tb->stage = TESTBED_AT_VGPU;
    testbed_advance(tb, TESTBED_AT_GUEST);
}

/* The VMM is killed while one of its processors waits. */
static void test_vmm_killed_meanwhile(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_ENGINE);
    pid_t pid = fork();

    if (pid == 0) {
        testbed_advance(tb, TESTBED_AT_GUEST);
        atomic_store(&tb->engine->state->hold, ENGINE_HOLD_RESET);
        guest_reset(&tb->guest);
        _exit(0);
    }
    g_assert_true(wait_until(atomic_load(&tb->engine->state->resets) > 0, GUEST_TIMEOUT_MS));
    kill(pid, SIGKILL);
    g_assert_true(wait_until(waitpid(pid, NULL, WNOHANG) == pid, 5000));
    /* The close is a reset of its own. */
    g_assert_true(wait_until(atomic_load(&tb->engine->state->resets) > 1, GUEST_TIMEOUT_MS));
    next_engine(tb);
    assert_round_trip(tb, 1);
}

/*
 * An engine that lives, but does not release what the VM had, is lost after the time of a reset:
 * the next VM gets another one.
 */
static void test_close_never_answered(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    g_autofree char *failure = NULL;
    EnginePeer *stuck = tb->engine;
    uint64_t epoch = peer_epoch(stuck);
    int error = 0;

    assert_ok(mdev_set_reset_timeout_ms(1500));
    atomic_store(&stuck->state->hold, ENGINE_HOLD_RESET);
    testbed_close_vmm(tb);
    g_assert_true(wait_until(atomic_load(&stuck->state->resets) > 0, GUEST_TIMEOUT_MS));
    /* Not before. */
    tb->engine = engine_peer_try_start(tb->uuid, 0, &error);
    g_assert_null(tb->engine);
    g_assert_cmpint(error, ==, -EBUSY);
    g_assert_true(wait_until((tb->engine = engine_peer_try_start(tb->uuid, 0, &error)), 15000));
    failure = mdev_attr(tb->uuid, "vgpu/failure");
    g_assert_cmpstr(failure, !=, "");
    testbed_advance(tb, TESTBED_AT_GUEST);
    assert_round_trip(tb, 1);
    g_assert_cmpint(peer_reset_done(stuck, epoch), <, 0);
    engine_peer_stop(stuck);
    assert_round_trip(tb, 2);
}

static int call_attach(EngineCtx *ctx, void *arg)
{
    (void)arg;
    return engine_ioctl(ctx, VGPU_ENGINE_ATTACH, NULL);
}

/*
 * One that answers the close, instead of ending, is detached at once and for good: the next VM may
 * be another customer's. Whatever it still calls changes nothing.
 */
static void test_close_answered(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    g_autofree char *failure = NULL;
    EnginePeer *old = tb->engine;
    uint64_t epoch = peer_epoch(old);

    assert_ok(mdev_set_reset_timeout_ms(1500));
    atomic_store(&old->state->hold, ENGINE_HOLD_RESET);
    testbed_close_vmm(tb);
    g_assert_true(wait_until(atomic_load(&old->state->resets) > 0, GUEST_TIMEOUT_MS));
    assert_fails(peer_reset_done(old, epoch), ENOTCONN);
    failure = mdev_attr(tb->uuid, "vgpu/failure");
    g_assert_nonnull(strstr(failure, "did not end with its VM"));
    assert_fails(engine_peer_call(old, call_attach, NULL, 0), EBUSY);
    tb->engine = engine_peer_start(tb->uuid, 0);
    testbed_advance(tb, TESTBED_AT_GUEST);
    assert_fails(peer_reset_done(old, epoch), ENOTCONN);
    assert_fails(engine_peer_call(old, call_attach, NULL, 0), EBUSY);
    assert_round_trip(tb, 1);
    engine_peer_stop(old);
    /* Nor does the time limit of that close count for the next engine. */
    g_usleep(2500000);
    assert_round_trip(tb, 2);
}

/* The VMM ends in the middle of everything; the next one finds a clean device. */
static void test_vmm_killed(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_ENGINE);

    for (unsigned round = 0; round < 3; round++) {
        pid_t pid = fork();

        if (pid == 0) {
            struct vgpu_mem_entry entry = {TESTBED_RAM_IOVA, 16 * PAGE_BYTES};
            uint64_t addr;

            testbed_advance(tb, TESTBED_AT_GUEST);
            assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, 8 * PAGE_BYTES, &addr));
            assert_ok(peer_publish(tb->engine, 0, 8 * PAGE_BYTES, addr));
            assert_window_pattern(tb, 0, 0);
            assert_ok(peer_pin(tb->engine, &entry, 1, VGPU_MEM_WRITE, NULL, &addr));
            assert_ok(peer_poke(tb->engine, addr, "x", 1));
            kill(getpid(), SIGKILL);
        }
        waitpid(pid, NULL, 0);
        g_assert_true(wait_until(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes") == 0, 5000));
        g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/window_published_bytes"), ==, 0);
    }
    testbed_advance(tb, TESTBED_AT_GUEST);
    assert_window_blank(tb, 0);
    assert_round_trip(tb, 1);
}

/* An engine that has served a VM hears of its end, whatever the guest has done before. */
static void test_close_after_reset(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    guest_reset(&tb->guest);
    g_assert_cmpuint(atomic_load(&tb->engine->state->resets), ==, 1);
    testbed_close_vmm(tb);
    g_assert_true(wait_until(atomic_load(&tb->engine->state->resets) == 2, GUEST_TIMEOUT_MS));
    testbed_advance(tb, TESTBED_AT_GUEST);
    assert_round_trip(tb, 1);
}

/* It may end instead of answering: that is no failure, and the next VM waits for another engine. */
static void test_close_ends_engine(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    g_autofree char *failure = NULL;

    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_RESET);
    testbed_close_vmm(tb);
    g_assert_true(wait_until(atomic_load(&tb->engine->state->resets) == 1, GUEST_TIMEOUT_MS));
    engine_peer_kill(tb->engine);
    tb->engine = NULL;
    failure = mdev_attr(tb->uuid, "vgpu/failure");
    g_assert_cmpstr(failure, ==, "");
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/engine_losses"), ==, 0);
    tb->stage = TESTBED_AT_VGPU;
    testbed_advance(tb, TESTBED_AT_GUEST);
    assert_round_trip(tb, 1);
}

static void *vfio_reset_thread(void *data)
{
    ResetThread *reset = data;

    vmm_device_reset(&reset->tb->dev);
    atomic_store(&reset->done, 1);
    return NULL;
}

/* A VMM that waits for an engine must not prevent the machine from suspending. */
static void test_machine_sleeps(void)
{
    g_autoptr(Testbed) tb = NULL;
    ResetThread reset = {0};
    int ret;

    if (access("/sys/power/pm_test", W_OK))
        driver_test_skip("this kernel cannot suspend");
    /* Longer than the kernel waits for tasks that do not freeze. */
    assert_ok(mdev_set_reset_timeout_ms(60000));
    tb = testbed_new(TESTBED_AT_GUEST);
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_RESET);
    reset.tb = tb;
    g_assert_cmpint(pthread_create(&reset.thread, NULL, vfio_reset_thread, &reset), ==, 0);
    g_assert_true(wait_until(atomic_load(&tb->engine->state->resets) > 0, GUEST_TIMEOUT_MS));
    assert_ok(sysfs_write("/sys/power/pm_test", "freezer"));
    ret = sysfs_write("/sys/power/state", "freeze");
    assert_ok(sysfs_write("/sys/power/pm_test", "none"));
    assert_ok(ret);
    assert_ok(peer_reset_done(tb->engine, atomic_load(&tb->engine->state->reset_epoch)));
    join_reset(&reset);
}

static void test_vfio_reset(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t epoch = peer_epoch(tb->engine);

    vmm_config_write(&tb->dev, PCI_BASE_ADDRESS_0, 0xfe000000, 4);
    assert_ok(vmm_device_reset(&tb->dev));
    g_assert_cmpint(guest_status(&tb->guest), ==, 0);
    g_assert_cmpuint(vmm_config_read(&tb->dev, PCI_BASE_ADDRESS_0, 4), ==, 0);
    g_assert_cmpuint(vmm_config_read(&tb->dev, PCI_COMMAND, 2), ==, 0);
    g_assert_cmpuint(peer_epoch(tb->engine), >, epoch);
    guest_free(&tb->guest);
    guest_probe(&tb->guest, &tb->dev, &tb->ram);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

/* Several processors reset at once, repeatedly. */
static void test_storm(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    for (unsigned round = 0; round < 10; round++) {
        ResetThread reset[4];

        for (unsigned i = 0; i < G_N_ELEMENTS(reset); i++) {
            reset[i].tb = tb;
            atomic_store(&reset[i].done, 0);
            pthread_create(&reset[i].thread, NULL, reset_thread, &reset[i]);
        }
        if (round % 2)
            assert_ok(vmm_device_reset(&tb->dev));
        for (unsigned i = 0; i < G_N_ELEMENTS(reset); i++)
            join_reset(&reset[i]);
        g_assert_cmpint(guest_status(&tb->guest), ==, 0);
        vmm_config_write(&tb->dev, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
        tb->guest.ram_used = 0;
        guest_up(&tb->guest, GUEST_FEATURES);
        assert_round_trip(tb, round + 1);
    }
}

/* A reset of a device that no driver has used does not need the engine. */
static void test_unused(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_OPEN);

    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_RESET | ENGINE_HOLD_EVENTS);
    guest_probe(&tb->guest, &tb->dev, &tb->ram);
    tb->stage = TESTBED_AT_GUEST;
    for (unsigned i = 0; i < 5; i++)
        guest_reset(&tb->guest);
    atomic_store(&tb->engine->state->hold, 0);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/reset/waits-for-engine", test_waits_for_engine);
    driver_test_add("/reset/does-not-block", test_does_not_block);
    driver_test_add("/reset/unpins-later", test_unpins_later);
    driver_test_add("/reset/leaves-old-rings", test_leaves_old_rings);
    driver_test_add("/reset/takes-all-back", test_takes_all_back);
    driver_test_add("/reset/stale-calls", test_stale_calls);
    driver_test_add("/reset/old-rings", test_old_rings);
    driver_test_add("/reset/in-flight", test_in_flight);
    driver_test_add("/reset/engine-never-answers", test_engine_never_answers);
    driver_test_add("/reset/engine-dies-meanwhile", test_engine_dies_meanwhile);
    driver_test_add("/reset/next-engine-pins", test_next_engine_pins);
    driver_test_add("/reset/engine-stays-away", test_engine_stays_away);
    driver_test_add("/reset/vmm-killed-meanwhile", test_vmm_killed_meanwhile);
    driver_test_add("/reset/close-never-answered", test_close_never_answered);
    driver_test_add("/reset/close-answered", test_close_answered);
    driver_test_add("/reset/vmm-killed", test_vmm_killed);
    driver_test_add("/reset/close-after-reset", test_close_after_reset);
    driver_test_add("/reset/close-ends-engine", test_close_ends_engine);
    driver_test_add("/reset/machine-sleeps", test_machine_sleeps);
    driver_test_add("/reset/vfio-reset", test_vfio_reset);
    driver_test_add("/reset/storm", test_storm);
    driver_test_add("/reset/unused", test_unused);
    return driver_test_run();
}
