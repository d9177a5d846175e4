/* SPDX-License-Identifier: MIT */
/* VFIO's migration: a VM that is stopped and goes on, that is saved and goes on elsewhere, and
 * states that are damaged. */
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "testbed.h"

#define CONTROL  VGPU_QUEUE_CONTROL
#define SHORT_MS 300
#define HEADER   64

#define STATE(name) VFIO_DEVICE_STATE_##name

static int go_to(Testbed *tb, unsigned state)
{
    int fd;

    assert_ok(vmm_migration_set_state(&tb->dev, state, &fd));
    g_assert_cmpint(vmm_migration_state(&tb->dev), ==, state);
    return fd;
}

/* What is left is the device, which a guest's firmware enables. */
static void reset_device(Testbed *tb)
{
    assert_ok(vmm_device_reset(&tb->dev));
    g_assert_cmpint(vmm_migration_state(&tb->dev), ==, STATE(RUNNING));
    vmm_config_write(&tb->dev, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
}

static int refused(Testbed *tb, unsigned state)
{
    int fd, ret = vmm_migration_set_state(&tb->dev, state, &fd);

    g_assert_cmpint(fd, ==, -1);
    return ret;
}

static int held_answer(EngineCtx *ctx, void *arg)
{
    const EngineHeld *held = &ctx->held[0];
    struct virtio_gpu_ctrl_hdr answer = held->header;

    (void)arg;
    answer.type = VIRTIO_GPU_RESP_OK_NODATA;
    return engine_push(ctx, held->queue, held->epoch, held->token, &answer, sizeof(answer));
}

/* A request that stays in flight. */
static struct virtio_gpu_ctrl_hdr *hold_request(Testbed *tb, uint64_t fence)
{
    struct virtio_gpu_ctrl_hdr req = {
        .type = VIRTIO_GPU_CMD_SUBMIT_3D, .flags = VIRTIO_GPU_FLAG_FENCE, .fence_id = fence};
    unsigned long before = atomic_load(&tb->engine->state->pops);
    void *resp;

    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_ANSWERS);
    g_usleep(50000);
    assert_ok(guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req), &resp));
    g_assert_true(wait_until(atomic_load(&tb->engine->state->pops) > before, GUEST_TIMEOUT_MS));
    return resp;
}

static void test_states(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    int fd;

    g_assert_cmphex(vmm_migration_flags(&tb->dev) & VFIO_MIGRATION_STOP_COPY, !=, 0);
    g_assert_cmpint(vmm_migration_state(&tb->dev), ==, STATE(RUNNING));
    assert_fails(refused(tb, 99), EINVAL);
    assert_fails(refused(tb, STATE(ERROR)), EINVAL);

    g_assert_cmpint(go_to(tb, STATE(RUNNING_P2P)), ==, -1);
    assert_round_trip(tb, 1);
    g_assert_cmpint(go_to(tb, STATE(STOP)), ==, -1);
    g_assert_cmpint(go_to(tb, STATE(RUNNING)), ==, -1);
    assert_round_trip(tb, 2);
    fd = go_to(tb, STATE(STOP_COPY));
    g_assert_cmpint(fd, >=, 0);
    close(fd);
    fd = go_to(tb, STATE(RESUMING));
    g_assert_cmpint(fd, >=, 0);
    close(fd);
    /* Nothing was written. */
    assert_fails(refused(tb, STATE(STOP)), EINVAL);
    reset_device(tb);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 3);
}

/* A stopped VM's memory stays as it is, and it gets its answers when it goes on. */
static void test_stop(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    GuestQueue *q = &tb->guest.queue[CONTROL];
    struct virtio_gpu_ctrl_hdr *resp = hold_request(tb, 5);
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    uint16_t used = q->used->idx;
    unsigned long pops;
    void *second;

    go_to(tb, STATE(STOP));
    pops = atomic_load(&tb->engine->state->pops);
    atomic_store(&tb->engine->state->hold, 0);
    assert_ok(engine_peer_call(tb->engine, held_answer, NULL, 0));
    assert_fails(engine_peer_call(tb->engine, held_answer, NULL, 0), ENOENT);
    assert_ok(guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req), &second));
    g_usleep(SHORT_MS * 1000);
    g_assert_cmpuint(q->used->idx, ==, used);
    g_assert_cmphex(resp->type, ==, 0);
    g_assert_cmpuint(atomic_load(&tb->engine->state->pops), ==, pops);

    go_to(tb, STATE(RUNNING));
    assert_ok(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS));
    g_assert_cmphex(resp->type, ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(resp->fence_id, ==, 5);
    assert_ok(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS));
    assert_round_trip(tb, 6);
    g_assert_cmpuint(atomic_load(&tb->engine->state->saves), ==, 0);
    g_assert_cmpint(atomic_load(&tb->engine->state->error), ==, 0);
}

static GByteArray *read_all(int fd)
{
    GByteArray *bytes = g_byte_array_new();
    uint8_t buf[1000];
    ssize_t n;

    while ((n = read(fd, buf, sizeof(buf))) > 0)
        g_byte_array_append(bytes, buf, (guint)n);
    g_assert_cmpint(n, ==, 0);
    return bytes;
}

static GByteArray *save(Testbed *tb)
{
    int fd = go_to(tb, STATE(STOP_COPY));
    GByteArray *bytes = read_all(fd);

    close(fd);
    go_to(tb, STATE(STOP));
    return bytes;
}

/* A VMM for the target, with the source's memory, and a guest that has not noticed yet. */
static Testbed *target_of(Testbed *from)
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

static int load(Testbed *tb, const GByteArray *state)
{
    int fd = go_to(tb, STATE(RESUMING));
    ssize_t n = write(fd, state->data, state->len);
    int ret = n < 0 ? -errno : refused(tb, STATE(STOP));

    close(fd);
    return ret;
}

static void test_moves(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = NULL;
    struct virtio_gpu_ctrl_hdr *held, *pending, req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    GuestQueue *q;
    void *offered;

    for (unsigned i = 0; i < 3 * GUEST_QUEUE_SIZE / 2; i++)
        assert_round_trip(from, i);
    held = hold_request(from, 77);
    /* One that the source has not even seen. */
    atomic_store(&from->engine->state->hold, ENGINE_HOLD_QUEUES);
    g_usleep(50000);
    assert_ok(guest_submit(&from->guest, CONTROL, &req, sizeof(req), sizeof(req), &offered));
    state = save(from);
    g_assert_cmpuint(atomic_load(&from->engine->state->saves), ==, 1);
    to = target_of(from);
    held = guest_ptr(&to->guest, guest_iova(&from->guest, held));
    pending = guest_ptr(&to->guest, guest_iova(&from->guest, offered));

    assert_ok(load(to, state));
    g_assert_cmphex(held->type, ==, 0);
    go_to(to, STATE(RUNNING));
    q = &to->guest.queue[CONTROL];
    assert_ok(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS));
    assert_ok(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS));
    g_assert_cmphex(held->type, ==, VIRTIO_GPU_RESP_ERR_UNSPEC);
    g_assert_cmphex(held->flags, ==, VIRTIO_GPU_FLAG_FENCE);
    g_assert_cmpuint(held->fence_id, ==, 77);
    g_assert_cmphex(pending->type, ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(atomic_load(&to->engine->state->loads), ==, 1);
    g_assert_cmpint(atomic_load(&to->engine->state->error), ==, 0);
    /* An interrupt that got lost on the way. */
    g_assert_cmpuint(vmm_eventfd_take(to->guest.vector_fd[1], GUEST_TIMEOUT_MS), >, 0);
    for (unsigned i = 0; i < 3 * GUEST_QUEUE_SIZE / 2; i++)
        assert_round_trip(to, i);

    /* And at the source, as if nothing had been: the guest there is another one now. */
    atomic_store(&from->engine->state->hold, 0);
    go_to(from, STATE(RUNNING));
    assert_ok(engine_peer_call(from->engine, held_answer, NULL, 0));
    assert_ok(guest_queue_wait(&from->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS));
    assert_ok(guest_queue_wait(&from->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS));
    assert_round_trip(from, 1);
    guest_reset(&to->guest);
    guest_up(&to->guest, GUEST_FEATURES);
    assert_round_trip(to, 2);
}

/* The file that the VMM reads while the VM runs. */
static int pre_copy(Testbed *tb)
{
    if (!(vmm_migration_flags(&tb->dev) & VFIO_MIGRATION_PRE_COPY))
        driver_test_skip("this kernel has no VFIO_MIGRATION_PRE_COPY");
    return go_to(tb, STATE(PRE_COPY));
}

static void *stop_copy(void *tb)
{
    go_to(tb, STATE(STOP_COPY));
    return NULL;
}

/* A state of nothing. */
static int late_save(EngineCtx *ctx, void *arg)
{
    struct vgpu_engine_state state = {.argsz = sizeof(state), .epoch = engine_epoch(ctx)};

    (void)arg;
    return engine_ioctl(ctx, VGPU_ENGINE_STATE_SAVE, &state);
}

/* What the target's guest finds as the answer to @resp of the source's. */
static uint32_t answer_at(Testbed *to, Testbed *from, const void *resp, const GByteArray *state)
{
    const struct virtio_gpu_ctrl_hdr *there = guest_ptr(&to->guest, guest_iova(&from->guest, resp));

    assert_ok(load(to, state));
    go_to(to, STATE(RUNNING));
    assert_ok(guest_queue_wait(&to->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS));
    g_assert_cmpuint(there->fence_id, ==, 8);
    assert_round_trip(to, 9);
    return there->type;
}

/*
 * Answered after the VM was stopped and before it was saved. The VMM may have copied the pages that
 * the engine has written for it, so at the target it is an error. At the source nothing is lost.
 */
static void test_stopped_answers(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = NULL;
    struct virtio_gpu_ctrl_hdr *resp = hold_request(from, 8);

    go_to(from, STATE(STOP));
    assert_ok(engine_peer_call(from->engine, held_answer, NULL, 0));
    state = save(from);
    to = target_of(from);
    g_assert_cmphex(answer_at(to, from, resp, state), ==, VIRTIO_GPU_RESP_ERR_UNSPEC);

    go_to(from, STATE(RUNNING));
    assert_ok(guest_queue_wait(&from->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS));
    g_assert_cmphex(resp->type, ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* The same with a VMM that saves while the VM runs, and copies such pages after the stop. */
static void test_moves_answers(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = NULL;
    GThread *stops;
    struct virtio_gpu_ctrl_hdr *resp = hold_request(from, 8);
    int fd = pre_copy(from);

    /* The engine answers between the stop and its part of the saving. */
    atomic_store(&from->engine->state->hold, ENGINE_HOLD_ANSWERS | ENGINE_HOLD_SAVE);
    stops = g_thread_new("stops", stop_copy, from);
    g_assert_true(wait_until(atomic_load(&from->engine->state->saves) == 1, GUEST_TIMEOUT_MS));
    assert_ok(engine_peer_call(from->engine, held_answer, NULL, 0));
    assert_ok(engine_peer_call(from->engine, late_save, NULL, 0));
    g_thread_join(stops);
    state = read_all(fd);
    close(fd);
    to = target_of(from);
    g_assert_cmphex(answer_at(to, from, resp, state), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* A guest whose driver is not up: firmware, or a kernel without one. */
static void test_idle(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_OPEN);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = NULL;

    guest_probe(&from->guest, &from->dev, &from->ram);
    from->stage = TESTBED_AT_GUEST;
    state = save(from);
    g_assert_cmpuint(atomic_load(&from->engine->state->saves), ==, 0);
    to = target_of(from);
    assert_ok(load(to, state));
    go_to(to, STATE(RUNNING));
    g_assert_cmpint(guest_status(&to->guest), ==, 0);
    guest_up(&to->guest, GUEST_FEATURES);
    assert_round_trip(to, 1);
    g_assert_cmpuint(atomic_load(&to->engine->state->loads), ==, 0);
}

static void test_pre_copy(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) rest = NULL, state = g_byte_array_new();
    struct vfio_precopy_info info = {.argsz = sizeof(info)};
    uint8_t header[2 * HEADER];
    int fd = pre_copy(from), target;

    assert_round_trip(from, 1);
    g_assert_cmpint(ioctl(fd, VFIO_MIG_GET_PRECOPY_INFO, &info), ==, 0);
    g_assert_cmpuint(info.initial_bytes, ==, HEADER);
    g_assert_cmpuint(info.dirty_bytes, ==, 0);
    g_assert_cmpint(read(fd, header, sizeof(header)), ==, HEADER);
    g_assert_cmpint(read(fd, header, sizeof(header)), ==, -1);
    g_assert_cmpint(errno, ==, ENOMSG);
    g_byte_array_append(state, header, HEADER);

    /* Given up, and once more. */
    g_assert_cmpint(go_to(from, STATE(RUNNING)), ==, -1);
    g_assert_cmpint(read(fd, header, sizeof(header)), ==, -1);
    g_assert_cmpint(errno, ==, ENODEV);
    close(fd);
    assert_round_trip(from, 2);
    fd = go_to(from, STATE(PRE_COPY));
    g_assert_cmpint(read(fd, header, HEADER), ==, HEADER);
    g_assert_cmpint(go_to(from, STATE(STOP_COPY)), ==, -1);
    g_assert_cmpint(ioctl(fd, VFIO_MIG_GET_PRECOPY_INFO, &info), ==, -1);
    rest = read_all(fd);
    close(fd);
    go_to(from, STATE(STOP));

    to = target_of(from);
    target = go_to(to, STATE(RESUMING));
    g_assert_cmpint(write(target, state->data, state->len), ==, HEADER);
    for (unsigned i = 0; i < rest->len; i += 7)
        g_assert_cmpint(write(target, rest->data + i, MIN(7, rest->len - i)), >, 0);
    close(target);
    go_to(to, STATE(RUNNING));
    assert_round_trip(to, 3);
}

/* Its memory is changed while the VM runs: the target has accepted it as it was. */
static void test_memory_changes(void)
{
    static const char *const sizes[] = {"33554432", "134217728"};

    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
        g_autoptr(Testbed) to = NULL;
        g_autoptr(GByteArray) state = NULL;
        int fd = pre_copy(from);

        assert_ok(mdev_attr_set(from->uuid, "vgpu/vram_bytes", sizes[i]));
        go_to(from, STATE(STOP_COPY));
        state = read_all(fd);
        close(fd);
        to = target_of(from);
        assert_ok(load(to, state));
        go_to(to, STATE(RUNNING));
        assert_round_trip(to, i);
        g_clear_pointer(&to, testbed_free);
        g_clear_pointer(&from, testbed_free);
        assert_ok(mdev_gpu_remove(TESTBED_GPU));
    }
}

/* Bytes of the header, as model/migration_data.c has them. */
static void test_wrong_target(void)
{
    static const unsigned fields[] = {0, 8, 16, 24 + 5, 32, 40, 48, 52};
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = save(from);

    to = target_of(from);
    for (unsigned i = 0; i < G_N_ELEMENTS(fields); i++) {
        int fd = go_to(to, STATE(RESUMING));
        uint8_t header[HEADER];

        memcpy(header, state->data, HEADER);
        header[fields[i]] ^= 1;
        g_assert_cmpint(write(fd, header, HEADER - 1), ==, HEADER - 1);
        g_assert_cmpint(write(fd, header + HEADER - 1, 1), ==, -1);
        g_assert_cmpint(errno, ==, EINVAL);
        g_assert_cmpint(write(fd, header, 1), ==, -1);
        close(fd);
        assert_fails(refused(to, STATE(STOP)), EINVAL);
        reset_device(to);
    }
    assert_ok(load(to, state));
    go_to(to, STATE(RUNNING));
    assert_round_trip(to, 1);
}

static void test_other_renderer(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = testbed_new_on(from->gpu, TESTBED_TYPE, TESTBED_AT_VGPU);
    g_autoptr(Testbed) old = testbed_new_on(from->gpu, TESTBED_TYPE, TESTBED_AT_VGPU);
    g_autoptr(GByteArray) state = save(from);

    to->engine = engine_peer_start(to->uuid, ENGINE_OTHER);
    to->stage = TESTBED_AT_ENGINE;
    testbed_advance(to, TESTBED_AT_OPEN);
    assert_fails(load(to, state), EINVAL);

    old->engine = engine_peer_start(old->uuid, ENGINE_NO_SAVE);
    old->stage = TESTBED_AT_ENGINE;
    testbed_advance(old, TESTBED_AT_GUEST);
    assert_fails(refused(old, STATE(STOP_COPY)), EOPNOTSUPP);
    go_to(old, STATE(RUNNING));
    assert_round_trip(old, 1);
}

/* What a guest cannot have done is refused; whatever is not, must not harm the kernel. The seed is
 * fixed. */
static void test_damaged(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = NULL;
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    unsigned accepted = 0, bad = 0;

    hold_request(from, 1);
    state = save(from);
    to = target_of(from);
    for (unsigned len = HEADER; len < state->len;
         len += 1 + (unsigned)g_rand_int_range(rand, 0, 60)) {
        GByteArray cut = {.data = state->data, .len = len};

        assert_fails(load(to, &cut), EINVAL);
        reset_device(to);
    }
    for (unsigned i = 0; i < 200; i++) {
        GByteArray copy = {.data = g_memdup2(state->data, state->len), .len = state->len};

        for (int n = g_rand_int_range(rand, 1, 4); n; n--) {
            unsigned end = g_rand_boolean(rand) ? HEADER + 32 : 700;

            copy.data[g_rand_int_range(rand, HEADER, (gint32)end)] = (uint8_t)g_rand_int(rand);
        }
        if (load(to, &copy) == 0) {
            accepted++;
            go_to(to, STATE(RUNNING));
        } else {
            bad++;
        }
        g_free(copy.data);
        reset_device(to);
    }
    g_test_message("%u were refused, %u not", bad, accepted);
    g_assert_cmpuint(bad, >, 30);
    g_assert_cmpuint(accepted, >, 10);
    guest_reset(&to->guest);
    guest_up(&to->guest, GUEST_FEATURES);
    assert_round_trip(to, 1);
}

/* A VMM resets the device if the step fails, and the guest would not notice. So reading fails. */
static void silent_while_running(Testbed *tb)
{
    char byte;
    int fd;

    if (!(vmm_migration_flags(&tb->dev) & VFIO_MIGRATION_PRE_COPY))
        return;
    fd = go_to(tb, STATE(PRE_COPY));
    go_to(tb, STATE(STOP_COPY));
    g_assert_cmpint(read(fd, &byte, 1), ==, -1);
    g_assert_cmpint(errno, ==, ETIMEDOUT);
    close(fd);
    go_to(tb, STATE(RUNNING));
    assert_round_trip(tb, 2);
}

static void test_silent_engine(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    assert_ok(mdev_set_reset_timeout_ms(300));
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_SAVE);
    g_usleep(50000);
    assert_fails(refused(tb, STATE(STOP_COPY)), ETIMEDOUT);
    g_assert_cmpint(vmm_migration_state(&tb->dev), ==, STATE(STOP));
    go_to(tb, STATE(RUNNING));
    assert_round_trip(tb, 1);
    silent_while_running(tb);
    atomic_store(&tb->engine->state->hold, 0);
    g_usleep(50000);
    g_byte_array_unref(save(tb));
}

static int push_nothing(EngineCtx *ctx, void *arg)
{
    (void)arg;
    return engine_push(ctx, CONTROL, engine_epoch(ctx), 0, NULL, 0);
}

static int early_load(EngineCtx *ctx, void *arg)
{
    struct vgpu_engine_state state = {.argsz = sizeof(state), .epoch = engine_epoch(ctx)};

    (void)arg;
    return engine_ioctl(ctx, VGPU_ENGINE_STATE_LOAD, &state);
}

static void test_unasked_engine(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    assert_fails(engine_peer_call(tb->engine, late_save, NULL, 0), ESTALE);
    assert_fails(engine_peer_call(tb->engine, early_load, NULL, 0), ENOENT);
    assert_fails(engine_peer_call(tb->engine, push_nothing, NULL, 0), ENOENT);
    go_to(tb, STATE(STOP));
    assert_fails(engine_peer_call(tb->engine, late_save, NULL, 0), ESTALE);
    go_to(tb, STATE(RUNNING));
    assert_round_trip(tb, 1);
}

/* What is saved is the device after the reset. */
static void test_during_reset(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = NULL;

    assert_ok(mdev_set_reset_timeout_ms(1000));
    atomic_store(&from->engine->state->hold, ENGINE_HOLD_RESET);
    g_usleep(50000);
    guest_set_status(&from->guest, 0);
    g_assert_cmpint(guest_status(&from->guest), !=, 0);
    state = save(from);
    to = target_of(from);
    assert_ok(load(to, state));
    go_to(to, STATE(RUNNING));
    g_assert_cmpint(guest_status(&to->guest), ==, 0);
    guest_up(&to->guest, GUEST_FEATURES);
    assert_round_trip(to, 1);
}

static int pop_early(EngineCtx *ctx, void *arg)
{
    struct vgpu_queue_request pop;

    (void)arg;
    return engine_pop(ctx, CONTROL, engine_epoch(ctx), ctx->request, 4096, &pop);
}

/* An engine that has not fetched what was loaded: it gets no request, and is saved with it once
 * more. */
static void test_saved_again(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) via = NULL;
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = save(from), again = NULL;
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    void *resp;

    via = target_of(from);
    atomic_store(&via->engine->state->hold, ENGINE_HOLD_EVENTS);
    g_usleep(50000);
    assert_ok(load(via, state));
    go_to(via, STATE(RUNNING));
    assert_ok(guest_submit(&via->guest, CONTROL, &req, sizeof(req), sizeof(req), &resp));
    assert_fails(engine_peer_call(via->engine, pop_early, NULL, 0), EAGAIN);
    again = save(via);
    g_assert_cmpuint(atomic_load(&via->engine->state->saves), ==, 0);
    g_assert_cmpuint(again->len, ==, state->len);

    to = target_of(via);
    assert_ok(load(to, again));
    go_to(to, STATE(RUNNING));
    assert_ok(guest_queue_wait(&to->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS));
    g_assert_cmpuint(atomic_load(&to->engine->state->loads), ==, 1);

    /* And at the place between, where the engine wakes up at last. */
    go_to(via, STATE(RUNNING));
    atomic_store(&via->engine->state->hold, 0);
    assert_ok(guest_queue_wait(&via->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS));
    g_assert_cmpuint(atomic_load(&via->engine->state->loads), ==, 1);
    g_assert_cmpint(atomic_load(&via->engine->state->error), ==, 0);
    assert_round_trip(via, 3);
}

/* What was loaded belongs to the epoch: after the guest's reset there is nothing. */
static void test_reset_before_loading(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = save(from);

    to = target_of(from);
    atomic_store(&to->engine->state->hold, ENGINE_HOLD_EVENTS);
    g_usleep(50000);
    assert_ok(load(to, state));
    go_to(to, STATE(RUNNING));
    guest_set_status(&to->guest, 0);
    atomic_store(&to->engine->state->hold, 0);
    guest_reset(&to->guest);
    guest_up(&to->guest, GUEST_FEATURES);
    assert_round_trip(to, 1);
    g_assert_cmpuint(atomic_load(&to->engine->state->loads), ==, 0);
    g_assert_cmpint(atomic_load(&to->engine->state->error), ==, 0);
}

/* Its guest gets errors until it resets the device, there as here. */
static void test_lost_engine(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = NULL;

    engine_peer_kill(from->engine);
    from->engine = NULL;
    assert_answered_with_error(from, 1);
    state = save(from);
    to = target_of(from);
    assert_ok(load(to, state));
    go_to(to, STATE(RUNNING));
    assert_answered_with_error(to, 2);
    guest_reset(&to->guest);
    guest_up(&to->guest, GUEST_FEATURES);
    assert_round_trip(to, 3);
}

/* The engine that dies while the VM is stopped; and on the target, before the VM goes on. */
static void test_engine_dies(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = NULL;
    struct virtio_gpu_ctrl_hdr *resp = hold_request(from, 4);

    state = save(from);
    to = target_of(from);
    engine_peer_kill(from->engine);
    from->engine = NULL;
    g_usleep(SHORT_MS * 1000);
    g_assert_cmphex(resp->type, ==, 0);
    go_to(from, STATE(RUNNING));
    assert_ok(guest_queue_wait(&from->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS));
    g_assert_cmphex(resp->type, ==, VIRTIO_GPU_RESP_ERR_UNSPEC);

    assert_ok(load(to, state));
    engine_peer_kill(to->engine);
    to->engine = NULL;
    g_usleep(SHORT_MS * 1000);
    go_to(to, STATE(RUNNING));
    assert_ok(guest_queue_wait(&to->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS));
    assert_answered_with_error(to, 5);
}

/* And while it is asked what to save. */
static void test_engine_dies_asked(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = NULL;
    GThread *stops;
    int fd = pre_copy(from);

    atomic_store(&from->engine->state->hold, ENGINE_HOLD_SAVE);
    stops = g_thread_new("stops", stop_copy, from);
    g_assert_true(wait_until(atomic_load(&from->engine->state->saves) == 1, GUEST_TIMEOUT_MS));
    engine_peer_kill(from->engine);
    from->engine = NULL;
    g_thread_join(stops);
    state = read_all(fd);
    close(fd);
    to = target_of(from);
    assert_ok(load(to, state));
    go_to(to, STATE(RUNNING));
    assert_answered_with_error(to, 1);
    guest_reset(&to->guest);
    guest_up(&to->guest, GUEST_FEATURES);
    assert_round_trip(to, 2);
}

#define RACE_ROUNDS 150

typedef struct {
    Testbed *tb;
    atomic_int fd; /* that the one got last, for the other to read and write */
    atomic_bool done;
} Race;

static void *change_states(void *data)
{
    static const unsigned states[] = {STATE(STOP_COPY), STATE(RUNNING), STATE(PRE_COPY),
                                      STATE(STOP_COPY), STATE(STOP),    STATE(RESUMING)};
    Race *race = data;

    for (unsigned i = 0; i < RACE_ROUNDS; i++) {
        for (unsigned s = 0; s < G_N_ELEMENTS(states); s++) {
            int fd, old;

            vmm_migration_set_state(&race->tb->dev, states[s], &fd);
            if (fd < 0)
                continue;
            old = atomic_exchange(&race->fd, fd);
            if (old >= 0)
                close(old);
        }
    }
    atomic_store(&race->done, true);
    return NULL;
}

static void *use_file(void *data)
{
    Race *race = data;
    uint8_t buf[512];

    while (!atomic_load(&race->done)) {
        int fd = atomic_load(&race->fd);

        if (read(fd, buf, sizeof(buf)) < 0 && write(fd, buf, sizeof(buf)) < 0)
            g_usleep(100);
    }
    return NULL;
}

/* Threads of a VMM that disagree: states, the file, and the device's reset. */
static void test_threads(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    Race race = {.tb = tb, .fd = -1};
    GThread *states = g_thread_new("states", change_states, &race);
    GThread *file = g_thread_new("file", use_file, &race);

    while (!atomic_load(&race.done)) {
        assert_ok(vmm_device_reset(&tb->dev));
        vmm_config_write(&tb->dev, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
        g_usleep(1000);
    }
    g_thread_join(states);
    g_thread_join(file);
    close(atomic_load(&race.fd));
    reset_device(tb);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

#define LOG_PAGES (TESTBED_RAM_SIZE / PAGE_BYTES)

/* What was written since the last report, by page of guest RAM. */
static bool *report(Testbed *tb)
{
    static uint64_t bitmap[LOG_PAGES / 64];
    static bool pages[LOG_PAGES];

    memset(bitmap, 0, sizeof(bitmap));
    assert_ok(vmm_log_report(&tb->dev, TESTBED_RAM_IOVA, TESTBED_RAM_SIZE, bitmap));
    for (unsigned i = 0; i < LOG_PAGES; i++)
        pages[i] = bitmap[i / 64] >> i % 64 & 1;
    return pages;
}

static unsigned count(const bool *pages, unsigned first, unsigned n)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < n; i++)
        sum += pages[first + i];
    return sum;
}

/* VFIO's log of written memory: with iommufd VMMs migrate by it. */
static void test_log(void)
{
    enum { FIRST = 2053, WRITABLE = 70, READABLE = 9 };
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    const struct vgpu_mem_entry entries[] = {
        {TESTBED_RAM_IOVA + FIRST * PAGE_BYTES, WRITABLE * PAGE_BYTES},
        {TESTBED_RAM_IOVA + (FIRST + WRITABLE) * PAGE_BYTES, READABLE * PAGE_BYTES}};
    unsigned used = (unsigned)((uint8_t *)tb->guest.queue[CONTROL].used - tb->ram.mem) / PAGE_BYTES;
    uint64_t bitmap[1], offset;
    bool *pages;

    if (!vmm_by_iommufd()) {
        assert_fails(vmm_log_start(&tb->dev, TESTBED_RAM_IOVA, TESTBED_RAM_SIZE), ENOTTY);
        driver_test_skip("type1 tracks written memory by itself");
    }
    assert_fails(vmm_log_stop(&tb->dev), EINVAL);
    assert_fails(vmm_log_report(&tb->dev, TESTBED_RAM_IOVA, 64 * PAGE_BYTES, bitmap), EINVAL);
    assert_ok(vmm_log_start(&tb->dev, TESTBED_RAM_IOVA, TESTBED_RAM_SIZE));
    assert_fails(vmm_log_start(&tb->dev, TESTBED_RAM_IOVA, TESTBED_RAM_SIZE), EINVAL);
    g_assert_cmpuint(count(report(tb), 0, LOG_PAGES), ==, 0);

    /* The driver writes the used ring and the answer. */
    assert_round_trip(tb, 1);
    pages = report(tb);
    g_assert_true(pages[used]);
    g_assert_cmpuint(count(pages, 0, LOG_PAGES), <=, 3);
    g_assert_cmpuint(count(report(tb), 0, LOG_PAGES), ==, 0);

    /* The engine writes whenever it likes, while it can. */
    assert_ok(peer_pin(tb->engine, &entries[0], 1, VGPU_MEM_WRITE, &offset, NULL));
    assert_ok(peer_pin(tb->engine, &entries[1], 1, 0, NULL, NULL));
    for (unsigned i = 0; i < 2; i++) {
        pages = report(tb);
        g_assert_cmpuint(count(pages, FIRST, WRITABLE), ==, WRITABLE);
        g_assert_cmpuint(count(pages, 0, LOG_PAGES), ==, WRITABLE);
    }
    assert_ok(peer_unpin(tb->engine, offset));
    pages = report(tb);
    g_assert_cmpuint(count(pages, FIRST, WRITABLE), ==, WRITABLE);
    g_assert_cmpuint(count(pages, 0, LOG_PAGES), ==, WRITABLE);
    g_assert_cmpuint(count(report(tb), 0, LOG_PAGES), ==, 0);

    /* In parts, which forget nothing of each other. */
    assert_ok(peer_pin(tb->engine, &entries[0], 1, VGPU_MEM_WRITE, NULL, NULL));
    guest_reset(&tb->guest);
    guest_up(&tb->guest, GUEST_FEATURES);
    bitmap[0] = 0;
    assert_ok(vmm_log_report(&tb->dev, entries[0].iova + 3 * PAGE_BYTES, 5 * PAGE_BYTES, bitmap));
    g_assert_cmphex(bitmap[0], ==, 0x1f);
    pages = report(tb);
    g_assert_cmpuint(count(pages, FIRST, WRITABLE), ==, WRITABLE - 5);
    g_assert_cmpuint(count(pages, FIRST + 3, 5), ==, 0);
    assert_ok(vmm_log_stop(&tb->dev));

    /* One that is not stopped ends with the VMM. */
    assert_ok(vmm_log_start(&tb->dev, TESTBED_RAM_IOVA, TESTBED_RAM_SIZE));
    assert_round_trip(tb, 2);
    testbed_close_vmm(tb);
    testbed_advance(tb, TESTBED_AT_GUEST);
    assert_fails(vmm_log_stop(&tb->dev), EINVAL);
}

/* The VMM ends in each state, with the descriptor open or not, and the next one finds a new device.
 */
static void test_vmm_ends(void)
{
    static const unsigned states[] = {STATE(STOP),        STATE(STOP_COPY), STATE(RESUMING),
                                      STATE(RUNNING_P2P), STATE(PRE_COPY),  STATE(PRE_COPY_P2P)};
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint8_t buf[16];

    for (unsigned i = 0; i < G_N_ELEMENTS(states); i++) {
        int fd;

        /* PRE_COPY is the last two's. */
        if (i == 4 && !(vmm_migration_flags(&tb->dev) & VFIO_MIGRATION_PRE_COPY))
            break;
        fd = go_to(tb, states[i]);
        testbed_close_vmm(tb);
        if (fd >= 0) {
            g_assert_cmpint(states[i] == STATE(RESUMING) ? write(fd, buf, 1) : read(fd, buf, 1), ==,
                            -1);
            g_assert_cmpint(errno, ==, ENODEV);
            close(fd);
        }
        testbed_advance(tb, TESTBED_AT_GUEST);
        g_assert_cmpint(vmm_migration_state(&tb->dev), ==, STATE(RUNNING));
        assert_round_trip(tb, i);
    }
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/migration/states", test_states);
    driver_test_add("/migration/stop", test_stop);
    driver_test_add("/migration/moves", test_moves);
    driver_test_add("/migration/stopped-answers", test_stopped_answers);
    driver_test_add("/migration/moves-answers", test_moves_answers);
    driver_test_add("/migration/idle", test_idle);
    driver_test_add("/migration/pre-copy", test_pre_copy);
    driver_test_add("/migration/memory-changes", test_memory_changes);
    driver_test_add("/migration/wrong-target", test_wrong_target);
    driver_test_add("/migration/other-renderer", test_other_renderer);
    driver_test_add("/migration/damaged", test_damaged);
    driver_test_add("/migration/silent-engine", test_silent_engine);
    driver_test_add("/migration/unasked-engine", test_unasked_engine);
    driver_test_add("/migration/during-reset", test_during_reset);
    driver_test_add("/migration/saved-again", test_saved_again);
    driver_test_add("/migration/reset-before-loading", test_reset_before_loading);
    driver_test_add("/migration/lost-engine", test_lost_engine);
    driver_test_add("/migration/engine-dies", test_engine_dies);
    driver_test_add("/migration/engine-dies-asked", test_engine_dies_asked);
    driver_test_add("/migration/threads", test_threads);
    driver_test_add("/migration/log", test_log);
    driver_test_add("/migration/vmm-ends", test_vmm_ends);
    return driver_test_run();
}
