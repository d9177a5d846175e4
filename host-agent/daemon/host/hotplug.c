/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/host/hotplug.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib-unix.h>
#include <libudev.h>
#include <string.h>

/* A GPU that appears or changes its driver causes tens of events within this time. */
#define SETTLE_MS 200

#define RECEIVE_BYTES (16 * 1024 * 1024)

struct Hotplug {
    struct udev *udev;
    struct udev_monitor *monitor;
    guint source;
    guint settle;
    void (*changed)(void *data);
    void (*vgpu_changed)(const char *uuid, void *data);
    void *data;
};

static gboolean tell(void *data)
{
    Hotplug *hotplug = data;

    hotplug->settle = 0;
    hotplug->changed(hotplug->data);
    return G_SOURCE_REMOVE;
}

static void refresh_soon(Hotplug *hotplug)
{
    if (!hotplug->settle)
        hotplug->settle = g_timeout_add(SETTLE_MS, tell, hotplug);
}

/* A vGPU's events do not change the GPUs, so these need not be read again. */
static void take(Hotplug *hotplug, struct udev_device *device)
{
    if (g_strcmp0(udev_device_get_subsystem(device), "mdev") == 0)
        hotplug->vgpu_changed(udev_device_get_sysname(device), hotplug->data);
    else
        refresh_soon(hotplug);
}

static gboolean event_came(int fd, GIOCondition condition, void *data)
{
    Hotplug *hotplug = data;
    struct udev_device *device;

    (void)fd;
    (void)condition;
    errno = 0;
    while ((device = udev_monitor_receive_device(hotplug->monitor))) {
        take(hotplug, device);
        udev_device_unref(device);
        errno = 0;
    }
    /* Events came faster than they were read: the lost ones may concern anything. */
    if (errno == ENOBUFS) {
        g_message("events of udev were lost; all GPUs and vGPUs are read again");
        refresh_soon(hotplug);
    }
    return G_SOURCE_CONTINUE;
}

static int subscribe(struct udev_monitor *monitor)
{
    static const char *const subsystems[] = {"pci", "drm", "mdev_bus", "mdev", "misc"};
    int ret = 0;

    for (guint i = 0; ret >= 0 && i < G_N_ELEMENTS(subsystems); i++)
        ret = udev_monitor_filter_add_match_subsystem_devtype(monitor, subsystems[i], NULL);
    /*
     * The maximum that the kernel allows (net.core.rmem_max): a thousand vGPUs may be made at once.
     */
    udev_monitor_set_receive_buffer_size(monitor, RECEIVE_BYTES);
    return ret < 0 ? ret : udev_monitor_enable_receiving(monitor);
}

Hotplug *hotplug_new(void (*changed)(void *data),
                     void (*vgpu_changed)(const char *uuid, void *data), void *data, GError **error)
{
    g_autoptr(Hotplug) hotplug = g_new0(Hotplug, 1);
    int ret = -ENOMEM;

    hotplug->changed = changed;
    hotplug->vgpu_changed = vgpu_changed;
    hotplug->data = data;
    hotplug->udev = udev_new();
    if (hotplug->udev)
        hotplug->monitor = udev_monitor_new_from_netlink(hotplug->udev, "udev");
    if (hotplug->monitor)
        ret = subscribe(hotplug->monitor);
    if (ret < 0) {
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(-ret),
                    "can't listen to udev's events: %s", g_strerror(-ret));
        return NULL;
    }
    hotplug->source =
        g_unix_fd_add(udev_monitor_get_fd(hotplug->monitor), G_IO_IN, event_came, hotplug);
    return g_steal_pointer(&hotplug);
}

void hotplug_free(Hotplug *hotplug)
{
    if (hotplug->source)
        g_source_remove(hotplug->source);
    if (hotplug->settle)
        g_source_remove(hotplug->settle);
    if (hotplug->monitor)
        udev_monitor_unref(hotplug->monitor);
    if (hotplug->udev)
        udev_unref(hotplug->udev);
    g_free(hotplug);
}
