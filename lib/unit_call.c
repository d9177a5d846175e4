/* SPDX-License-Identifier: MIT */
#include "lib/unit_call.h"

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
