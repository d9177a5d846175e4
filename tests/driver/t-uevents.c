/* SPDX-License-Identifier: MIT */
/* The driver's events about a vGPU for udev's listeners, which replace polling its attributes. */
#include <linux/netlink.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "testbed.h"

#define KERNEL_GROUP 1

/* The kernel's own events, before udev has processed them. */
static int listen_to_kernel(void)
{
    const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP};
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(bind(fd, (const struct sockaddr *)&address, sizeof(address)), ==, 0);
    return fd;
}

/* The number of "change" events of the vGPU until no more arrive. */
static unsigned count_changes(int fd, const char *uuid)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    g_autofree char *end = g_strconcat("/", uuid, NULL);
    char text[8192];
    unsigned count = 0;

    while (poll(&poller, 1, 500) > 0) {
        ssize_t length = recv(fd, text, sizeof(text) - 1, 0);

        g_assert_cmpint(length, >, 0);
        text[length] = '\0';
        count += g_str_has_prefix(text, "change@") && g_str_has_suffix(text, end);
    }
    return count;
}

static void test_parameters(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    int fd = listen_to_kernel();

    assert_ok(mdev_attr_set(tb->uuid, "vgpu/weight", "250"));
    assert_ok(mdev_attr_set(tb->uuid, "vgpu/vram_bytes", "33554432"));
    g_assert_cmpuint(count_changes(fd, tb->uuid), ==, 2);
    assert_ok(mdev_attr_set(tb->uuid, "vgpu/tenant", "red"));
    assert_ok(mdev_attr_set(tb->uuid, "vgpu/class", "burstable"));
    assert_ok(mdev_attr_set(tb->uuid, "vgpu/oversubscribe_bytes", "4096"));
    g_assert_cmpuint(count_changes(fd, tb->uuid), ==, 3);
    assert_fails(mdev_attr_set(tb->uuid, "vgpu/tenant", "-"), EINVAL);
    assert_fails(mdev_attr_set(tb->uuid, "vgpu/weight", "0"), EINVAL);
    g_assert_cmpuint(count_changes(fd, tb->uuid), ==, 0);
    close(fd);
}

static void test_engine(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    int fd = listen_to_kernel();

    testbed_advance(tb, TESTBED_AT_ENGINE);
    g_assert_cmpuint(count_changes(fd, tb->uuid), ==, 2); /* starting, ready */
    testbed_advance(tb, TESTBED_AT_GUEST);
    count_changes(fd, tb->uuid);
    engine_peer_kill(tb->engine);
    tb->engine = NULL;
    g_assert_cmpuint(count_changes(fd, tb->uuid), ==, 1);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/engine_losses"), ==, 1);
    close(fd);
}

/* A VM opens the vGPU and closes it: nothing else of a closed one changes. */
static void test_open(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_ENGINE);
    g_autofree char *uuid = g_strdup(tb->uuid);
    int fd = listen_to_kernel();

    testbed_advance(tb, TESTBED_AT_GUEST);
    g_assert_cmpuint(count_changes(fd, uuid), ==, 1);
    testbed_close_vmm(tb);
    g_assert_cmpuint(count_changes(fd, uuid), >=, 1);
    close(fd);
}

static void test_failure(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_ENGINE);
    g_autofree char *state = NULL;
    int fd = listen_to_kernel();

    assert_ok(peer_fail(tb->engine, "the renderer would not start"));
    g_assert_cmpuint(count_changes(fd, tb->uuid), >=, 1);
    state = mdev_attr(tb->uuid, "vgpu/state");
    g_assert_nonnull(strstr(state, "engine=failed"));
    close(fd);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/uevents/parameters", test_parameters);
    driver_test_add("/uevents/engine", test_engine);
    driver_test_add("/uevents/open", test_open);
    driver_test_add("/uevents/failure", test_failure);
    return driver_test_run();
}
