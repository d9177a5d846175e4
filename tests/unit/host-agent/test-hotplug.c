/* SPDX-License-Identifier: MIT */
/* udev's events, and the handling of lost ones. libudev is the test's own. */
#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <libudev.h>
#include <unistd.h>

#include "host-agent/daemon/host/host.h"

static int pipes[2];
static guint changes;

/* The first read reports lost events; there are no others. */
struct udev_device *udev_monitor_receive_device(struct udev_monitor *monitor)
{
    char byte;

    (void)monitor;
    errno = read(pipes[0], &byte, 1) == 1 ? ENOBUFS : EAGAIN;
    return NULL;
}

int udev_monitor_get_fd(struct udev_monitor *monitor)
{
    (void)monitor;
    return pipes[0];
}

static void changed(gboolean lost, void *data)
{
    (void)data;
    changes += lost;
}

static void vgpu_changed(const char *uuid, void *data)
{
    (void)uuid;
    (void)data;
}

static gboolean is_over(void *data)
{
    *(gboolean *)data = TRUE;
    return G_SOURCE_REMOVE;
}

static void test_lost(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Hotplug) hotplug = NULL;
    gboolean over = FALSE;

    g_assert_true(g_unix_open_pipe(pipes, O_CLOEXEC | O_NONBLOCK, NULL));
    hotplug = hotplug_new(changed, vgpu_changed, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpint(write(pipes[1], "x", 1), ==, 1);
    g_timeout_add_seconds(3, is_over, &over);
    while (!over && !changes)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpuint(changes, ==, 1);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/hotplug/lost", test_lost);
    return g_test_run();
}
