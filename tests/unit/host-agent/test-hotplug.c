/* SPDX-License-Identifier: MIT */
/* udev's events, and the handling of lost ones. libudev is the test's own. */
#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <libudev.h>
#include <string.h>
#include <unistd.h>

#include "host-agent/daemon/host/host.h"

static int pipes[2];
static guint changes;
static guint timeout; /* of the timer that was set last */

/* A device of each class that events may be of, by the letter in the pipe. */
struct udev_device {
    char letter;
    const char *subsystem;
    const char *class;
};

static struct udev_device devices[] = {
    {'g', "pci", "30000"}, {'a', "pci", "120000"}, {'n', "pci", "20000"}, {'d', "drm", NULL}};

/* "x": events were lost. */
struct udev_device *udev_monitor_receive_device(struct udev_monitor *monitor)
{
    char byte = '\0';

    (void)monitor;
    errno = read(pipes[0], &byte, 1) == 1 ? ENOBUFS : EAGAIN;
    for (guint i = 0; i < G_N_ELEMENTS(devices); i++)
        if (devices[i].letter == byte)
            return &devices[i];
    return NULL;
}

const char *udev_device_get_subsystem(struct udev_device *device)
{
    return device->subsystem;
}

const char *udev_device_get_property_value(struct udev_device *device, const char *key)
{
    g_assert_cmpstr(key, ==, "PCI_CLASS");
    return device->class;
}

const char *udev_device_get_sysname(struct udev_device *device)
{
    return device->subsystem;
}

struct udev_device *udev_device_unref(struct udev_device *device)
{
    (void)device;
    return NULL;
}

guint g_timeout_add(guint interval, GSourceFunc function, gpointer data)
{
    timeout = interval;
    return g_timeout_add_full(G_PRIORITY_DEFAULT, interval, function, data, NULL);
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

static void assert_settles(const char *letters, guint ms)
{
    g_autoptr(Hotplug) hotplug = NULL;

    g_assert_true(g_unix_open_pipe(pipes, O_CLOEXEC | O_NONBLOCK, NULL));
    hotplug = hotplug_new(changed, vgpu_changed, NULL, NULL);
    timeout = 0;
    g_assert_cmpint(write(pipes[1], letters, strlen(letters)), ==, strlen(letters));
    while (!timeout)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpuint(timeout, ==, ms);
    close(pipes[0]);
    close(pipes[1]);
}

/* A network card that adds its virtual functions has all GPUs read once in 5 s, not 5 times a s. */
static void test_others(void)
{
    assert_settles("g", 200);
    assert_settles("a", 200);
    assert_settles("d", 200);
    assert_settles("nnnn", 5000);
    assert_settles("nng", 200);
    assert_settles("gnn", 200);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/hotplug/lost", test_lost);
    g_test_add_func("/hotplug/others", test_others);
    return g_test_run();
}
