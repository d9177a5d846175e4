/* SPDX-License-Identifier: MIT */
#include "lib/systemd.h"

#include <string.h>

#include "lib/host_root.h"
#include "lib/sysfs.h"

#define ENGINES "/sys/fs/cgroup/system.slice/system-vgpu\\x2dengine.slice"

char *engine_unit_name(const char *uuid)
{
    return g_strconcat("vgpu-engine@", uuid, ".service", NULL);
}

char *engine_unit_cgroup(const char *uuid)
{
    g_autofree char *unit = engine_unit_name(uuid);

    return g_build_filename(ENGINES, unit, NULL);
}

guint64 engine_unit_cpu_us(HostRoot *root, const char *uuid)
{
    static const char key[] = "usage_usec ";
    g_autofree char *dir = engine_unit_cgroup(uuid);
    g_autofree char *text = sysfs_read(root, dir, "cpu.stat");
    const char *at = text ? strstr(text, key) : NULL;

    return at ? g_ascii_strtoull(at + strlen(key), NULL, 10) : 0;
}

GStrv engine_unit_processes(HostRoot *root, const char *uuid)
{
    g_autofree char *dir = engine_unit_cgroup(uuid);
    g_autofree char *text = sysfs_read(root, dir, "cgroup.procs");

    return g_strsplit(text ? text : "", "\n", -1);
}

static void answered(GObject *bus, GAsyncResult *answer, void *data)
{
    g_autofree char *unit = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) job = g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), answer, &error);

    if (!job)
        g_message("%s can't be started or stopped: %s", unit, error->message);
}

void unit_call(GDBusConnection *bus, const char *method, const char *unit)
{
    g_dbus_connection_call(bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                           "org.freedesktop.systemd1.Manager", method,
                           g_variant_new("(ss)", unit, "replace"), NULL, G_DBUS_CALL_FLAGS_NONE, -1,
                           NULL, answered, g_strdup(unit));
}
