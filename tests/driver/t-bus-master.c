/* SPDX-License-Identifier: MIT */
/* Bus mastering: a guest that has disabled it has its memory left alone. */
#include <string.h>
#include <unistd.h>

#include "testbed.h"

#define CONTROL  VGPU_QUEUE_CONTROL
#define SHORT_MS 300

static void set_bus_master(Testbed *tb, bool on)
{
    uint32_t command = PCI_COMMAND_MEMORY | (on ? PCI_COMMAND_MASTER : 0);

    vmm_config_write(&tb->dev, PCI_COMMAND, command, 2);
}

/* No bus mastering: the device does not access guest memory, until the driver restarts it. */
static void test_no_bus_master(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    GuestQueue *q = &tb->guest.queue[CONTROL];
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    void *resp;

    set_bus_master(tb, false);
    g_assert_false(guest_status(&tb->guest) & VIRTIO_CONFIG_S_DRIVER_OK);
    assert_ok(guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req), &resp));
    g_assert_cmpint(guest_queue_wait(q, NULL, SHORT_MS), ==, -ETIMEDOUT);
    set_bus_master(tb, true);
    guest_queue_kick_always(q);
    g_assert_cmpint(guest_queue_wait(q, NULL, SHORT_MS), ==, -ETIMEDOUT);
    guest_set_status(&tb->guest, guest_status(&tb->guest) | VIRTIO_CONFIG_S_DRIVER_OK);
    guest_queue_kick_always(q);
    g_assert_cmpint(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS), >=, 0);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

static int call_push_held(EngineCtx *ctx, void *arg)
{
    EngineHeld *held = &ctx->held[*(uint32_t *)arg];
    struct virtio_gpu_ctrl_hdr resp = {.type = VIRTIO_GPU_RESP_OK_NODATA};

    return engine_push(ctx, held->queue, held->epoch, held->token, &resp, sizeof(resp));
}

/* Answers a request that the engine holds, with this result. */
static void push_held(Testbed *tb, uint32_t index, int expected)
{
    g_assert_cmpint(engine_peer_call(tb->engine, call_push_held, &index, sizeof(index)), ==,
                    expected);
}

/*
 * kexec in a guest: the old kernel last disables bus mastering, the new one first enables it, and
 * then it resets the device. Requests that the engine finishes meanwhile must not reach the new
 * kernel's memory.
 */
static void test_bus_master_in_flight(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct vgpu_mem_entry entry = {TESTBED_RAM_IOVA + 8 * MIB, PAGE_BYTES};
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D}, *resp[3];
    volatile uint16_t *used = &tb->guest.queue[CONTROL].used->idx;
    uint64_t addr;

    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_ANSWERS);
    for (unsigned i = 0; i < 3; i++)
        assert_ok(
            guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req), (void **)&resp[i]));
    g_assert_true(wait_until(atomic_load(&tb->engine->state->pops) == 3, GUEST_TIMEOUT_MS));
    assert_ok(peer_pin(tb->engine, &entry, 1, VGPU_MEM_WRITE, NULL, &addr));
    assert_ok(peer_poke(tb->engine, addr, "old", 4));
    g_assert_cmpstr((char *)tb->ram.mem + 8 * MIB, ==, "old");

    set_bus_master(tb, false);
    push_held(tb, 0, -ENOENT);
    assert_fails(peer_pin(tb->engine, &entry, 1, 0, NULL, NULL), EFAULT);
    set_bus_master(tb, true);
    push_held(tb, 1, -ENOENT);
    assert_ok(peer_poke(tb->engine, addr, "late", 5));
    g_assert_cmpuint(*used, ==, 0);
    for (unsigned i = 0; i < 3; i++)
        g_assert_cmphex(resp[i]->type, ==, 0);
    g_assert_cmpstr((char *)tb->ram.mem + 8 * MIB, ==, "old");
    g_assert_true(wait_until(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes") == 0, GUEST_TIMEOUT_MS));

    atomic_store(&tb->engine->state->hold, 0);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

/* A driver that fills its ring before it enables bus mastering need not ring again. */
static void test_bus_master_late(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    GuestQueue *q = &tb->guest.queue[CONTROL];
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    void *resp;

    set_bus_master(tb, false);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_ok(guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req), &resp));
    g_assert_cmpint(guest_queue_wait(q, NULL, SHORT_MS), ==, -ETIMEDOUT);
    set_bus_master(tb, true);
    g_assert_cmpint(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS), >=, 0);
    assert_round_trip(tb, 1);
}

/* ---- memory that a GPU's driver has, too ---- */

typedef struct {
    uint64_t offset;
} LendCall;

static int call_lend(EngineCtx *ctx, void *arg)
{
    const LendCall *call = arg;
    struct vgpu_mem_export export = {
        .argsz = sizeof(export), .epoch = engine_epoch(ctx), .offset = call->offset};

    return engine_ioctl(ctx, VGPU_ENGINE_MEM_EXPORT, &export);
}

static Testbed *new_testbed_with_cuda(void)
{
    Testbed *tb = testbed_new(TESTBED_AT_GPU);
    struct vgpu_type_desc type = mdev_type(TESTBED_TYPE, TESTBED_VRAM, TESTBED_WINDOW);

    type.cuda = 1;
    assert_ok(mdev_gpu_set_types(TESTBED_GPU, TESTBED_GPU_VRAM, &type, 1));
    testbed_advance(tb, TESTBED_AT_GUEST);
    return tb;
}

static uint64_t lend_page(Testbed *tb)
{
    struct vgpu_mem_entry entry = {TESTBED_RAM_IOVA + 8 * MIB, PAGE_BYTES};
    LendCall call;

    assert_ok(peer_pin(tb->engine, &entry, 1, VGPU_MEM_WRITE, &call.offset, NULL));
    assert_ok(engine_peer_call(tb->engine, call_lend, &call, sizeof(call)));
    return call.offset;
}

static atomic_bool is_off;

static void *disable(void *tb)
{
    set_bus_master(tb, false);
    atomic_store(&is_off, true);
    return NULL;
}

/*
 * The GPU goes on with what was lent until the engine has ended its programs, so the old kernel
 * does not: its last write takes as long. The new one finds a device that was reset.
 */
static void test_lent(void)
{
    g_autoptr(Testbed) tb = new_testbed_with_cuda();
    EngineState *engine = tb->engine->state;
    GThread *kernel;

    lend_page(tb);
    atomic_store(&engine->hold, ENGINE_HOLD_RESET);
    atomic_store(&is_off, false);
    kernel = g_thread_new("kernel", disable, tb);
    g_assert_true(wait_until(atomic_load(&engine->resets) == 1, GUEST_TIMEOUT_MS));
    g_usleep(SHORT_MS * 1000);
    g_assert_false(atomic_load(&is_off));
    assert_ok(peer_reset_done(tb->engine, atomic_load(&engine->reset_epoch)));
    g_thread_join(kernel);
    g_assert_cmpuint(guest_status(&tb->guest), ==, 0);
    g_assert_true(wait_until(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes") == 0, GUEST_TIMEOUT_MS));
    atomic_store(&engine->hold, 0);
    set_bus_master(tb, true);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

/*
 * An engine that gives up says so before its programs have ended. They have when the next one is
 * there.
 */
static void test_lent_failed(void)
{
    g_autoptr(Testbed) tb = new_testbed_with_cuda();
    GThread *kernel;

    lend_page(tb);
    assert_ok(peer_fail(tb->engine, "no Vulkan device of this GPU"));
    atomic_store(&is_off, false);
    kernel = g_thread_new("kernel", disable, tb);
    g_usleep(SHORT_MS * 1000);
    g_assert_false(atomic_load(&is_off));
    engine_peer_kill(tb->engine);
    tb->engine = engine_peer_start(tb->uuid, 0);
    g_thread_join(kernel);
    g_assert_cmpuint(guest_status(&tb->guest), ==, 0);
    set_bus_master(tb, true);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

/* What was given back is nobody's, and the device is not reset. */
static void test_lent_before(void)
{
    g_autoptr(Testbed) tb = new_testbed_with_cuda();

    assert_ok(peer_unpin(tb->engine, lend_page(tb)));
    set_bus_master(tb, false);
    g_assert_cmpuint(atomic_load(&tb->engine->state->resets), ==, 0);
    g_assert_cmpuint(guest_status(&tb->guest), !=, 0);
    set_bus_master(tb, true);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/bus-master/off", test_no_bus_master);
    driver_test_add("/bus-master/in-flight", test_bus_master_in_flight);
    driver_test_add("/bus-master/late", test_bus_master_late);
    driver_test_add("/bus-master/lent", test_lent);
    driver_test_add("/bus-master/lent-failed", test_lent_failed);
    driver_test_add("/bus-master/lent-before", test_lent_before);
    return driver_test_run();
}
