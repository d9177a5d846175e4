/* SPDX-License-Identifier: MIT */
#include "migration.h"

#include <string.h>
#include <unistd.h>

int migration_go_to(Testbed *tb, unsigned state)
{
    int fd;

    assert_ok(vmm_migration_set_state(&tb->dev, state, &fd));
    g_assert_cmpint(vmm_migration_state(&tb->dev), ==, state);
    return fd;
}

void migration_reset(Testbed *tb)
{
    assert_ok(vmm_device_reset(&tb->dev));
    g_assert_cmpint(vmm_migration_state(&tb->dev), ==, STATE(RUNNING));
    vmm_config_write(&tb->dev, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
}

int migration_refused(Testbed *tb, unsigned state)
{
    int fd, ret = vmm_migration_set_state(&tb->dev, state, &fd);

    g_assert_cmpint(fd, ==, -1);
    return ret;
}

int migration_answer_held(EngineCtx *ctx, void *arg)
{
    const EngineHeld *held = &ctx->held[0];
    struct virtio_gpu_ctrl_hdr answer = held->header;

    (void)arg;
    answer.type = VIRTIO_GPU_RESP_OK_NODATA;
    return engine_push(ctx, held->queue, held->epoch, held->token, &answer, sizeof(answer));
}

struct virtio_gpu_ctrl_hdr *migration_hold_request(Testbed *tb, uint64_t fence)
{
    struct virtio_gpu_ctrl_hdr req = {
        .type = VIRTIO_GPU_CMD_SUBMIT_3D, .flags = VIRTIO_GPU_FLAG_FENCE, .fence_id = fence};
    unsigned long before = atomic_load(&tb->engine->state->pops);
    void *resp;

    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_ANSWERS);
    g_usleep(50000);
    assert_ok(guest_submit(&tb->guest, VGPU_QUEUE_CONTROL, &req, sizeof(req), sizeof(req), &resp));
    g_assert_true(wait_until(atomic_load(&tb->engine->state->pops) > before, GUEST_TIMEOUT_MS));
    return resp;
}

GByteArray *migration_read_all(int fd)
{
    GByteArray *bytes = g_byte_array_new();
    uint8_t buf[1000];
    ssize_t n;

    while ((n = read(fd, buf, sizeof(buf))) > 0)
        g_byte_array_append(bytes, buf, (guint)n);
    g_assert_cmpint(n, ==, 0);
    return bytes;
}

GByteArray *migration_save(Testbed *tb)
{
    int fd = migration_go_to(tb, STATE(STOP_COPY));
    GByteArray *bytes = migration_read_all(fd);

    close(fd);
    migration_go_to(tb, STATE(STOP));
    return bytes;
}

Testbed *migration_target_of(Testbed *from)
{
    Testbed *to = testbed_new_on(from->gpu, TESTBED_TYPE, TESTBED_AT_OPEN);
    int64_t moved = to->ram.mem - from->ram.mem;

    guest_probe(&to->guest, &to->dev, &to->ram);
    to->stage = TESTBED_AT_GUEST;
    memcpy(to->ram.mem, from->ram.mem, from->ram.size);
    to->guest.ram_used = from->guest.ram_used;
    to->guest.features = from->guest.features;
    for (unsigned i = 0; i < GUEST_NUM_QUEUES; i++) {
        GuestQueue *q = &to->guest.queue[i];

        *q = from->guest.queue[i];
        q->guest = &to->guest;
        q->desc = (void *)((uint8_t *)q->desc + moved);
        q->avail = (void *)((uint8_t *)q->avail + moved);
        q->used = (void *)((uint8_t *)q->used + moved);
    }
    return to;
}

int migration_load(Testbed *tb, const GByteArray *state)
{
    int fd = migration_go_to(tb, STATE(RESUMING));
    ssize_t n = write(fd, state->data, state->len);
    int ret = n < 0 ? -errno : migration_refused(tb, STATE(STOP));

    close(fd);
    return ret;
}

int migration_pre_copy(Testbed *tb)
{
    if (!(vmm_migration_flags(&tb->dev) & VFIO_MIGRATION_PRE_COPY))
        driver_test_skip("this kernel has no VFIO_MIGRATION_PRE_COPY");
    return migration_go_to(tb, STATE(PRE_COPY));
}

void *migration_stop_copy(void *tb)
{
    migration_go_to(tb, STATE(STOP_COPY));
    return NULL;
}

int migration_save_nothing(EngineCtx *ctx, void *arg)
{
    struct vgpu_engine_state state = {.argsz = sizeof(state), .epoch = engine_epoch(ctx)};

    (void)arg;
    return engine_ioctl(ctx, VGPU_ENGINE_STATE_SAVE, &state);
}
