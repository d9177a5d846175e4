/* SPDX-License-Identifier: MIT */
/* A drained GPU: no new vGPU, no VM can open one, and VMs keep the ones that they have open. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testbed.h"

/* Opens the vGPU as a VM does, and closes it again. */
static int try_open(const char *uuid)
{
    VmmContainer container;
    VmmDevice dev;
    int ret = vmm_container_open(&container);

    if (ret < 0)
        return ret;
    ret = vmm_vgpu_open(&container, &dev, uuid);
    if (ret >= 0)
        vmm_device_close(&dev);
    vmm_container_close(&container);
    return ret;
}

static void test_no_new_vgpu(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    g_autofree char *uuid = mdev_uuid_new();

    g_assert_cmpint(mdev_type_available(TESTBED_GPU, TESTBED_TYPE), ==, 3);
    assert_ok(mdev_gpu_drain(TESTBED_GPU, true));
    assert_ok(mdev_gpu_drain(TESTBED_GPU, true));
    g_assert_cmpint(mdev_type_available(TESTBED_GPU, TESTBED_TYPE), ==, 0);
    assert_fails(mdev_create(TESTBED_GPU, TESTBED_TYPE, uuid), EBUSY);
    g_assert_false(mdev_exists(uuid));
    /* Existing vGPUs can be removed. */
    assert_ok(mdev_remove(tb->uuid));
    assert_ok(mdev_gpu_drain(TESTBED_GPU, false));
    g_assert_cmpint(mdev_type_available(TESTBED_GPU, TESTBED_TYPE), ==, 4);
    assert_ok(mdev_create(TESTBED_GPU, TESTBED_TYPE, uuid));
    assert_ok(mdev_remove(uuid));
}

static void test_no_open(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_ENGINE);
    g_autofree char *state = NULL;

    assert_ok(try_open(tb->uuid));
    assert_ok(mdev_gpu_drain(TESTBED_GPU, true));
    assert_fails(try_open(tb->uuid), EBUSY);
    state = mdev_attr(tb->uuid, "vgpu/state");
    g_assert_true(g_str_has_prefix(state, "device=closed"));
    assert_ok(mdev_gpu_drain(TESTBED_GPU, false));
    testbed_advance(tb, TESTBED_AT_GUEST);
    assert_round_trip(tb, 1);
}

/* A VM keeps its vGPU, and cannot open it again after closing it. */
static void test_running(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    assert_round_trip(tb, 1);
    assert_ok(mdev_gpu_drain(TESTBED_GPU, true));
    assert_round_trip(tb, 2);
    assert_ok(vmm_device_reset(&tb->dev));
    testbed_close_vmm(tb);
    assert_fails(try_open(tb->uuid), EBUSY);
}

/*
 * A VM that waits for its engine when the drain begins must not succeed after the drain's return.
 */
static void test_waits_for_engine(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    int status;
    pid_t vm = fork();

    if (vm == 0)
        _exit(try_open(tb->uuid) == -EBUSY ? 0 : 1);
    g_usleep(500000);
    g_assert_cmpint(waitpid(vm, &status, WNOHANG), ==, 0);
    assert_ok(mdev_gpu_drain(TESTBED_GPU, true));
    testbed_advance(tb, TESTBED_AT_ENGINE);
    g_assert_cmpint(waitpid(vm, &status, 0), ==, vm);
    g_assert_cmpint(status, ==, 0);
}

/* Concurrent opens: a VM that has not opened it when the call returns does not succeed later. */
static void test_race(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_ENGINE);
    int64_t end = now_ms() + 5000;
    pid_t vm = fork();
    int status;

    if (vm == 0) {
        while (now_ms() < end)
            try_open(tb->uuid);
        _exit(0);
    }
    while (now_ms() < end - 500) {
        bool was_open = false;

        assert_ok(mdev_gpu_drain(TESTBED_GPU, true));
        for (int i = 0; i < 200; i++) {
            g_autofree char *state = mdev_attr(tb->uuid, "vgpu/state");
            bool is_open = !g_str_has_prefix(state, "device=closed");

            g_assert_false(i > 0 && is_open && !was_open);
            was_open = is_open;
        }
        assert_ok(mdev_gpu_drain(TESTBED_GPU, false));
        g_usleep(3000);
    }
    g_assert_cmpint(waitpid(vm, &status, 0), ==, vm);
    g_assert_cmpint(status, ==, 0);
}

static void test_registration(void)
{
    struct vgpu_type_desc types[] = {mdev_type("small", 64 * MIB, 16 * MIB),
                                     mdev_type("other", 64 * MIB, 16 * MIB)};

    assert_fails(mdev_gpu_drain(TESTBED_GPU, true), ENODEV);
    assert_ok(mdev_gpu_add(TESTBED_GPU, 256 * MIB, types, 1));
    assert_ok(mdev_gpu_drain(TESTBED_GPU, true));
    /* In place, and with other names: registered again. */
    assert_ok(mdev_gpu_set_types(TESTBED_GPU, 512 * MIB, types, 1));
    g_assert_cmpint(mdev_type_available(TESTBED_GPU, "small"), ==, 0);
    assert_ok(mdev_gpu_set_types(TESTBED_GPU, 512 * MIB, types, 2));
    g_assert_cmpint(mdev_type_available(TESTBED_GPU, "other"), ==, 0);
    assert_ok(mdev_gpu_remove(TESTBED_GPU));
    assert_ok(mdev_gpu_add(TESTBED_GPU, 256 * MIB, types, 1));
    g_assert_cmpint(mdev_type_available(TESTBED_GPU, "small"), ==, 4);
}

static void test_bad_argument(void)
{
    struct vgpu_control_drain arg = {.argsz = sizeof(arg), .gpu = TESTBED_GPU};

    arg.flags = VGPU_DRAIN_ON << 1;
    assert_fails(mdev_control_ioctl(VGPU_CONTROL_DRAIN_GPU, &arg), EINVAL);
    arg.flags = 0;
    arg.argsz = 4;
    assert_fails(mdev_control_ioctl(VGPU_CONTROL_DRAIN_GPU, &arg), EINVAL);
    arg.argsz = sizeof(arg);
    memset(arg.gpu, 'a', sizeof(arg.gpu));
    assert_fails(mdev_control_ioctl(VGPU_CONTROL_DRAIN_GPU, &arg), EINVAL);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/drain/no-new-vgpu", test_no_new_vgpu);
    driver_test_add("/drain/no-open", test_no_open);
    driver_test_add("/drain/running", test_running);
    driver_test_add("/drain/waits-for-engine", test_waits_for_engine);
    driver_test_add("/drain/race", test_race);
    driver_test_add("/drain/registration", test_registration);
    driver_test_add("/drain/bad-argument", test_bad_argument);
    return driver_test_run();
}
