/* SPDX-License-Identifier: MIT */
/* sysfs attributes of a vGPU, in mdevctl's order: after create, before the first open. */

#include "testbed.h"

static void assert_attr(Testbed *tb, const char *name, uint64_t value)
{
    g_autofree char *path = g_strconcat("vgpu/", name, NULL);

    g_assert_cmpuint(mdev_attr_u64(tb->uuid, path), ==, value);
}

static int set_attribute(Testbed *tb, const char *name, const char *value)
{
    g_autofree char *path = g_strconcat("vgpu/", name, NULL);

    return mdev_attr_set(tb->uuid, path, value);
}

static void test_defaults(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    g_autofree char *state = mdev_attr(tb->uuid, "vgpu/state");
    g_autofree char *failure = mdev_attr(tb->uuid, "vgpu/failure");

    assert_attr(tb, "vram_bytes", TESTBED_VRAM);
    assert_attr(tb, "window_bytes", TESTBED_WINDOW);
    assert_attr(tb, "weight", 100);
    assert_attr(tb, "cap", 100);
    assert_attr(tb, "priority", 0);
    assert_attr(tb, "pinned_bytes", 0);
    assert_attr(tb, "window_published_bytes", 0);
    assert_attr(tb, "doorbells", 0);
    assert_attr(tb, "interrupts", 0);
    g_assert_nonnull(state);
    g_assert_cmpstr(state, !=, "");
    g_assert_cmpstr(failure, ==, "");
}

/* Values that are written after create are in force at open, for the engine and the VMM. */
static void test_written_after_create(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    struct vgpu_engine_info info;

    assert_ok(set_attribute(tb, "vram_bytes", "100663296")); /* 96 MiB */
    assert_ok(set_attribute(tb, "window_bytes", "67108864"));
    assert_ok(set_attribute(tb, "weight", "250\n"));
    assert_ok(set_attribute(tb, "cap", "40"));
    assert_ok(set_attribute(tb, "priority", "7"));

    testbed_advance(tb, TESTBED_AT_OPEN);
    assert_ok(peer_info(tb->engine, &info));
    g_assert_cmpuint(info.vram_bytes, ==, 96 * MIB);
    g_assert_cmpuint(info.window_bytes, ==, 64 * MIB);
    g_assert_cmpuint(info.weight, ==, 250);
    g_assert_cmpuint(info.cap, ==, 40);
    g_assert_cmpuint(info.priority, ==, 7);
    g_assert_cmpuint(tb->dev.region[VFIO_PCI_BAR2_REGION_INDEX].size, ==, 64 * MIB);
}

static void test_vram_and_ledger(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);

    g_assert_cmpint(mdev_type_available(TESTBED_GPU, TESTBED_TYPE), ==, 3);
    assert_ok(set_attribute(tb, "vram_bytes", "134217728")); /* 128 of 256 MiB */
    g_assert_cmpint(mdev_type_available(TESTBED_GPU, TESTBED_TYPE), ==, 2);
    assert_fails(set_attribute(tb, "vram_bytes", "268435457"), ENOSPC);
    assert_attr(tb, "vram_bytes", 128 * MIB);
    assert_ok(set_attribute(tb, "vram_bytes", "1048576"));
    g_assert_cmpint(mdev_type_available(TESTBED_GPU, TESTBED_TYPE), ==, 3);
    assert_ok(set_attribute(tb, "vram_bytes", "268435456"));
    g_assert_cmpint(mdev_type_available(TESTBED_GPU, TESTBED_TYPE), ==, 0);
}

static void test_bad_values(void)
{
    static const char *const bad[][2] = {
        {"vram_bytes", "0"},
        {"vram_bytes", "-1"},
        {"vram_bytes", "lots"},
        {"vram_bytes", ""},
        {"vram_bytes", "99999999999999999999"},
        {"window_bytes", "0"},
        {"window_bytes", "3145728"},
        {"window_bytes", "524288"},
        {"window_bytes", "137438953472"},
        {"weight", "0"},
        {"weight", "10001"},
        {"weight", "1e3"},
        {"cap", "0"},
        {"cap", "101"},
        {"cap", "4294967297"},
        {"priority", "16"},
        {"priority", "-1"},
    };
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        int ret = set_attribute(tb, bad[i][0], bad[i][1]);

        /* An empty write never reaches the driver. */
        if (!*bad[i][1] && !ret)
            continue;
        if (ret != -EINVAL && ret != -ERANGE && ret != -ENOSPC)
            g_error("%s = \"%s\": %s", bad[i][0], bad[i][1], ret ? g_strerror(-ret) : "taken");
    }
    assert_attr(tb, "vram_bytes", TESTBED_VRAM);
    assert_attr(tb, "window_bytes", TESTBED_WINDOW);
    assert_attr(tb, "weight", 100);
    assert_attr(tb, "cap", 100);
    assert_attr(tb, "priority", 0);
}

static void test_read_only(void)
{
    static const char *const names[] = {
        "state",     "failure",    "pinned_bytes", "window_published_bytes",
        "doorbells", "interrupts", "cuda"};
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        g_assert_cmpint(set_attribute(tb, names[i], "1"), <, 0);
}

static void test_while_open(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct vgpu_engine_info info;

    assert_fails(set_attribute(tb, "window_bytes", "67108864"), EBUSY);
    assert_attr(tb, "window_bytes", TESTBED_WINDOW);

    /* The governor's parameters may change; the engine gets an event. */
    assert_ok(set_attribute(tb, "weight", "300"));
    assert_ok(set_attribute(tb, "cap", "50"));
    assert_ok(set_attribute(tb, "priority", "3"));
    g_assert_true(wait_until(atomic_load(&tb->engine->state->configs) > 0, 5000));
    assert_ok(peer_info(tb->engine, &info));
    g_assert_cmpuint(info.weight, ==, 300);
    g_assert_cmpuint(info.cap, ==, 50);
    g_assert_cmpuint(info.priority, ==, 3);
    assert_round_trip(tb, 1);

    testbed_close_vmm(tb);
    assert_ok(set_attribute(tb, "window_bytes", "67108864"));
}

/* Of the type; the engine is told. */
static void test_cuda(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GPU);
    struct vgpu_type_desc type = mdev_type(TESTBED_TYPE, TESTBED_VRAM, TESTBED_WINDOW);
    struct vgpu_engine_info info;

    type.cuda = 1;
    assert_ok(mdev_gpu_set_types(TESTBED_GPU, TESTBED_GPU_VRAM, &type, 1));
    testbed_advance(tb, TESTBED_AT_OPEN);
    assert_attr(tb, "cuda", 1);
    assert_ok(peer_info(tb->engine, &info));
    g_assert_cmpuint(info.cuda, ==, 1);
}

static void assert_text(Testbed *tb, const char *name, const char *expected)
{
    g_autofree char *path = g_strconcat("vgpu/", name, NULL);
    g_autofree char *text = mdev_attr(tb->uuid, path);

    g_assert_cmpstr(text, ==, expected);
}

/*
 * Attributes that the driver only stores: empty at first, read back unchanged, and cleared again.
 */
static void test_kept(void)
{
    static const char *const good[][2] = {
        {"tenant", "red"},
        {"tenant", "7-Red_team.eu"},
        {"tenant", "a23456789012345678901234567890123456789012345678901234567890123"},
        {"class", "guaranteed"},
        {"class", "burstable"},
        {"class", "best-effort"},
        {"oversubscribe_bytes", "0"},
        {"oversubscribe_bytes", "1125899906842624"},
    };
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);

    assert_text(tb, "tenant", "");
    assert_text(tb, "class", "");
    assert_text(tb, "oversubscribe_bytes", "");
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++) {
        g_autofree char *line = g_strconcat(good[i][1], "\n", NULL);

        assert_ok(set_attribute(tb, good[i][0], line));
        assert_text(tb, good[i][0], good[i][1]);
        assert_ok(set_attribute(tb, good[i][0], "\n"));
        assert_text(tb, good[i][0], "");
        assert_ok(set_attribute(tb, good[i][0], good[i][1]));
        assert_text(tb, good[i][0], good[i][1]);
    }
}

static void test_kept_bad_values(void)
{
    static const char *const bad[][2] = {
        {"tenant", "-red"},
        {"tenant", "../x"},
        {"tenant", "two words"},
        {"tenant", "red\n\n"},
        {"tenant", "r\xc3\xa9"},
        {"tenant", "a234567890123456789012345678901234567890123456789012345678901234"},
        {"class", "Guaranteed"},
        {"class", "best"},
        {"class", "best-effort "},
        {"oversubscribe_bytes", "1G"},
        {"oversubscribe_bytes", "-1"},
        {"oversubscribe_bytes", "1125899906842625"},
    };
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);

    assert_ok(set_attribute(tb, "tenant", "red"));
    assert_ok(set_attribute(tb, "class", "burstable"));
    assert_ok(set_attribute(tb, "oversubscribe_bytes", "4096"));
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        assert_fails(set_attribute(tb, bad[i][0], bad[i][1]), EINVAL);
    assert_text(tb, "tenant", "red");
    assert_text(tb, "class", "burstable");
    assert_text(tb, "oversubscribe_bytes", "4096");
}

static void test_kept_while_open(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    assert_ok(set_attribute(tb, "tenant", "red"));
    assert_ok(set_attribute(tb, "class", "best-effort"));
    assert_ok(set_attribute(tb, "oversubscribe_bytes", "4096"));
    assert_fails(set_attribute(tb, "display", "1"), EBUSY);
    assert_text(tb, "tenant", "red");
    assert_round_trip(tb, 1);
}

static void test_counters(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t doorbells = mdev_attr_u64(tb->uuid, "vgpu/doorbells");
    uint64_t interrupts = mdev_attr_u64(tb->uuid, "vgpu/interrupts");
    uint64_t requests = mdev_attr_u64(tb->uuid, "vgpu/requests");

    for (unsigned i = 1; i <= 5; i++) {
        guest_queue_want_interrupt(&tb->guest.queue[0], true);
        assert_round_trip(tb, i);
    }
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/requests"), ==, requests + 5);
    /* EVENT_IDX: no doorbell while the engine has not polled in vain. */
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/doorbells"), >, doorbells);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/doorbells"), <=, doorbells + 5);
    g_assert_true(wait_until(mdev_attr_u64(tb->uuid, "vgpu/interrupts") >= interrupts + 5, 5000));
}

static bool has_state(Testbed *tb, const char *expected)
{
    g_autofree char *state = mdev_attr(tb->uuid, "vgpu/state");

    return g_strcmp0(state, expected) == 0;
}

/* The state names differ at each step of a vGPU's life, and come back. */
static void test_states(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    g_autofree char *created = mdev_attr(tb->uuid, "vgpu/state");
    g_autofree char *ready = NULL;
    g_autofree char *running = NULL;

    testbed_advance(tb, TESTBED_AT_ENGINE);
    ready = mdev_attr(tb->uuid, "vgpu/state");
    g_assert_cmpstr(ready, !=, created);
    testbed_advance(tb, TESTBED_AT_GUEST);
    running = mdev_attr(tb->uuid, "vgpu/state");
    g_assert_cmpstr(running, !=, ready);
    testbed_close_vmm(tb);
    /* For a moment there is no engine: the test's is detached, and attaches anew. */
    g_assert_true(wait_until(has_state(tb, ready), 5000));
    engine_peer_stop(tb->engine);
    tb->engine = NULL;
    g_assert_true(wait_until(has_state(tb, created), 5000));
}

static void test_failure(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    g_autofree char *failure = NULL;

    assert_ok(peer_fail(tb->engine, "the renderer would not start"));
    failure = mdev_attr(tb->uuid, "vgpu/failure");
    g_assert_cmpstr(failure, ==, "the renderer would not start");
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/attributes/defaults", test_defaults);
    driver_test_add("/attributes/written-after-create", test_written_after_create);
    driver_test_add("/attributes/vram-and-ledger", test_vram_and_ledger);
    driver_test_add("/attributes/bad-values", test_bad_values);
    driver_test_add("/attributes/read-only", test_read_only);
    driver_test_add("/attributes/while-open", test_while_open);
    driver_test_add("/attributes/cuda", test_cuda);
    driver_test_add("/attributes/kept", test_kept);
    driver_test_add("/attributes/kept-bad-values", test_kept_bad_values);
    driver_test_add("/attributes/kept-while-open", test_kept_while_open);
    driver_test_add("/attributes/counters", test_counters);
    driver_test_add("/attributes/states", test_states);
    driver_test_add("/attributes/failure", test_failure);
    return driver_test_run();
}
