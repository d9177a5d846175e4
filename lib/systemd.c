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

static void manager_call(GDBusConnection *bus, const char *method, GVariant *parameters,
                         GCancellable *cancellable, GAsyncReadyCallback func, void *data)
{
    g_dbus_connection_call(bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                           "org.freedesktop.systemd1.Manager", method, parameters, NULL,
                           G_DBUS_CALL_FLAGS_NONE, -1, cancellable, func, data);
}

void unit_call(GDBusConnection *bus, const char *method, const char *unit)
{
    manager_call(bus, method, g_variant_new("(ss)", unit, "replace"), NULL, answered,
                 g_strdup(unit));
}

void unit_start_transient(GDBusConnection *bus, const char *unit, GVariant *properties)
{
    GVariant *others = g_variant_new_array(G_VARIANT_TYPE("(sa(sv))"), NULL, 0);

    manager_call(bus, "StartTransientUnit",
                 g_variant_new("(ss@a(sv)@a(sa(sv)))", unit, "replace", properties, others), NULL,
                 answered, g_strdup(unit));
}

void units_list(GDBusConnection *bus, const char *pattern, GCancellable *cancellable,
                GAsyncReadyCallback func, void *data)
{
    const char *states[] = {"active", NULL};
    const char *patterns[] = {pattern, NULL};

    manager_call(bus, "ListUnitsByPatterns", g_variant_new("(^as^as)", states, patterns),
                 cancellable, func, data);
}

/* Of the ten members of each answer the first is the name. */
GStrv units_list_finish(GDBusConnection *bus, GAsyncResult *answer, GError **error)
{
    g_autoptr(GVariant) result = g_dbus_connection_call_finish(bus, answer, error);
    g_autoptr(GVariant) list = NULL;
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();

    if (!result)
        return NULL;
    list = g_variant_get_child_value(result, 0);
    for (gsize i = 0; i < g_variant_n_children(list); i++) {
        g_autoptr(GVariant) unit = g_variant_get_child_value(list, i);
        g_autoptr(GVariant) name = g_variant_get_child_value(unit, 0);

        g_strv_builder_add(names, g_variant_get_string(name, NULL));
    }
    return g_strv_builder_end(names);
}

char *unit_name_escape(const char *text)
{
    GString *name = g_string_new(NULL);

    for (const char *at = text; *at; at++)
        if (*at == '/')
            g_string_append_c(name, '-');
        else if (g_ascii_isalnum(*at) || *at == ':' || *at == '_' || (*at == '.' && at > text))
            g_string_append_c(name, *at);
        else
            g_string_append_printf(name, "\\x%02x", (guint8)*at);
    return g_string_free(name, FALSE);
}
