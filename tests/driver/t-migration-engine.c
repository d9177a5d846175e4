/* SPDX-License-Identifier: MIT */
/* The engine of a VM that is saved or loaded: silent, unasked, late, or dead. */
#include <unistd.h>

#include "migration.h"

#define CONTROL  VGPU_QUEUE_CONTROL
#define SHORT_MS 300

/* A VMM resets the device if the step fails, and the guest would not notice. So reading fails. */
static void silent_while_running(Testbed *tb)
{
    char byte;
    int fd;

    if (!(vmm_migration_flags(&tb->dev) & VFIO_MIGRATION_PRE_COPY))
        return;
    fd = migration_go_to(tb, STATE(PRE_COPY));
    migration_go_to(tb, STATE(STOP_COPY));
    g_assert_cmpint(read(fd, &byte, 1), ==, -1);
    g_assert_cmpint(errno, ==, ETIMEDOUT);
    close(fd);
    migration_go_to(tb, STATE(RUNNING));
    assert_round_trip(tb, 2);
}

static void test_silent_engine(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    assert_ok(mdev_set_reset_timeout_ms(300));
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_SAVE);
    g_usleep(50000);
    assert_fails(migration_refused(tb, STATE(STOP_COPY)), ETIMEDOUT);
    g_assert_cmpint(vmm_migration_state(&tb->dev), ==, STATE(STOP));
    migration_go_to(tb, STATE(RUNNING));
    assert_round_trip(tb, 1);
    silent_while_running(tb);
    atomic_store(&tb->engine->state->hold, 0);
    g_usleep(50000);
    g_byte_array_unref(migration_save(tb));
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

    assert_fails(engine_peer_call(tb->engine, migration_save_nothing, NULL, 0), ESTALE);
    assert_fails(engine_peer_call(tb->engine, early_load, NULL, 0), ENOENT);
    assert_fails(engine_peer_call(tb->engine, push_nothing, NULL, 0), ENOENT);
    migration_go_to(tb, STATE(STOP));
    assert_fails(engine_peer_call(tb->engine, migration_save_nothing, NULL, 0), ESTALE);
    migration_go_to(tb, STATE(RUNNING));
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
    state = migration_save(from);
    to = migration_target_of(from);
    assert_ok(migration_load(to, state));
    migration_go_to(to, STATE(RUNNING));
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
    g_autoptr(GByteArray) state = migration_save(from), again = NULL;
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    void *resp;

    via = migration_target_of(from);
    engine_peer_hold(via->engine, ENGINE_HOLD_EVENTS);
    assert_ok(migration_load(via, state));
    migration_go_to(via, STATE(RUNNING));
    assert_ok(guest_submit(&via->guest, CONTROL, &req, sizeof(req), sizeof(req), &resp));
    assert_fails(engine_peer_call(via->engine, pop_early, NULL, 0), EAGAIN);
    again = migration_save(via);
    g_assert_cmpuint(atomic_load(&via->engine->state->saves), ==, 0);
    g_assert_cmpuint(again->len, ==, state->len);

    to = migration_target_of(via);
    assert_ok(migration_load(to, again));
    migration_go_to(to, STATE(RUNNING));
    assert_ok(guest_queue_wait(&to->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS));
    g_assert_cmpuint(atomic_load(&to->engine->state->loads), ==, 1);

    /* And at the place between, where the engine wakes up at last. */
    migration_go_to(via, STATE(RUNNING));
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
    g_autoptr(GByteArray) state = migration_save(from);

    to = migration_target_of(from);
    engine_peer_hold(to->engine, ENGINE_HOLD_EVENTS);
    assert_ok(migration_load(to, state));
    migration_go_to(to, STATE(RUNNING));
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
    state = migration_save(from);
    to = migration_target_of(from);
    assert_ok(migration_load(to, state));
    migration_go_to(to, STATE(RUNNING));
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
    struct virtio_gpu_ctrl_hdr *resp = migration_hold_request(from, 4);

    state = migration_save(from);
    to = migration_target_of(from);
    engine_peer_kill(from->engine);
    from->engine = NULL;
    g_usleep(SHORT_MS * 1000);
    g_assert_cmphex(resp->type, ==, 0);
    migration_go_to(from, STATE(RUNNING));
    assert_ok(guest_queue_wait(&from->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS));
    g_assert_cmphex(resp->type, ==, VIRTIO_GPU_RESP_ERR_UNSPEC);

    assert_ok(migration_load(to, state));
    engine_peer_kill(to->engine);
    to->engine = NULL;
    g_usleep(SHORT_MS * 1000);
    migration_go_to(to, STATE(RUNNING));
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
    int fd = migration_pre_copy(from);

    atomic_store(&from->engine->state->hold, ENGINE_HOLD_SAVE);
    stops = g_thread_new("stops", migration_stop_copy, from);
    g_assert_true(wait_until(atomic_load(&from->engine->state->saves) == 1, GUEST_TIMEOUT_MS));
    engine_peer_kill(from->engine);
    from->engine = NULL;
    g_thread_join(stops);
    state = migration_read_all(fd);
    close(fd);
    to = migration_target_of(from);
    assert_ok(migration_load(to, state));
    migration_go_to(to, STATE(RUNNING));
    assert_answered_with_error(to, 1);
    guest_reset(&to->guest);
    guest_up(&to->guest, GUEST_FEATURES);
    assert_round_trip(to, 2);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/migration-engine/silent", test_silent_engine);
    driver_test_add("/migration-engine/unasked", test_unasked_engine);
    driver_test_add("/migration-engine/during-reset", test_during_reset);
    driver_test_add("/migration-engine/saved-again", test_saved_again);
    driver_test_add("/migration-engine/reset-before-loading", test_reset_before_loading);
    driver_test_add("/migration-engine/lost", test_lost_engine);
    driver_test_add("/migration-engine/dies", test_engine_dies);
    driver_test_add("/migration-engine/dies-asked", test_engine_dies_asked);
    return driver_test_run();
}
