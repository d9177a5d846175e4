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

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/bus-master/off", test_no_bus_master);
    driver_test_add("/bus-master/in-flight", test_bus_master_in_flight);
    driver_test_add("/bus-master/late", test_bus_master_late);
    return driver_test_run();
}
