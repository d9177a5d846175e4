/* SPDX-License-Identifier: MIT */
#include "tests/unit/host-agent/fake_systemd.h"

static const char xml[] =
    "<node><interface name='org.freedesktop.systemd1.Manager'>"
    "<method name='StopUnit'><arg type='s' direction='in'/>"
    "<arg type='s' direction='in'/><arg type='o' direction='out'/></method>"
    "<method name='StartUnit'><arg type='s' direction='in'/>"
    "<arg type='s' direction='in'/><arg type='o' direction='out'/></method>"
    "<method name='RestartUnit'><arg type='s' direction='in'/>"
    "<arg type='s' direction='in'/><arg type='o' direction='out'/></method>"
    "<method name='StartTransientUnit'><arg type='s' direction='in'/>"
    "<arg type='s' direction='in'/><arg type='a(sv)' direction='in'/>"
    "<arg type='a(sa(sv))' direction='in'/><arg type='o' direction='out'/></method>"
    "<method name='ListUnitsByPatterns'><arg type='as' direction='in'/>"
    "<arg type='as' direction='in'/><arg type='a(ssssssouso)' direction='out'/></method>"
    "<method name='SetUnitProperties'><arg type='s' direction='in'/>"
    "<arg type='b' direction='in'/><arg type='a(sv)' direction='in'/></method>"
    "<method name='RevertUnitFiles'><arg type='as' direction='in'/>"
    "<arg type='a(sss)' direction='out'/></method>"
    "</interface></node>";

static void set_properties(FakeSystemd *systemd, GVariant *parameters,
                           GDBusMethodInvocation *invocation)
{
    g_autofree char *text = g_variant_print(parameters, FALSE);

    g_string_append_printf(systemd->set, "%s\n", text);
    if (systemd->refuses)
        g_dbus_method_invocation_return_dbus_error(invocation, "org.test.No", "no");
    else
        g_dbus_method_invocation_return_value(invocation, NULL);
}

static void revert(FakeSystemd *systemd, GVariant *parameters, GDBusMethodInvocation *invocation)
{
    g_autofree char *text = g_variant_print(parameters, FALSE);

    g_string_append_printf(systemd->reverted, "%s\n", text);
    g_dbus_method_invocation_return_value(invocation, g_variant_new("(a(sss))", NULL));
}

static void make(FakeSystemd *systemd, GVariant *parameters, GDBusMethodInvocation *invocation)
{
    g_autoptr(GVariant) properties = g_variant_get_child_value(parameters, 2);
    g_autofree char *text = g_variant_print(properties, FALSE);
    const char *unit;

    g_variant_get_child(parameters, 0, "&s", &unit);
    g_string_append_printf(systemd->made, "%s %s\n", unit, text);
    g_ptr_array_add(systemd->units, g_strdup(unit));
    g_dbus_method_invocation_return_value(invocation, g_variant_new("(o)", "/job/1"));
}

/* Those with a name that matches the first pattern, all of them active. */
static void list(const FakeSystemd *systemd, GVariant *parameters,
                 GDBusMethodInvocation *invocation)
{
    g_auto(GStrv) patterns = NULL;
    GVariantBuilder units;

    g_variant_get_child(parameters, 1, "^as", &patterns);
    g_variant_builder_init(&units, G_VARIANT_TYPE("a(ssssssouso)"));
    for (guint i = 0; i < systemd->units->len; i++)
        if (g_pattern_match_simple(patterns[0], g_ptr_array_index(systemd->units, i)))
            g_variant_builder_add(&units, "(ssssssouso)", g_ptr_array_index(systemd->units, i), "",
                                  "loaded", "active", "waiting", "", "/", 0, "", "/");
    g_dbus_method_invocation_return_value(invocation, g_variant_new("(a(ssssssouso))", &units));
}

static void forget(FakeSystemd *systemd, const char *unit)
{
    guint at;

    if (g_ptr_array_find_with_equal_func(systemd->units, unit, g_str_equal, &at))
        g_ptr_array_remove_index(systemd->units, at);
}

static GString *record_of(const FakeSystemd *systemd, const char *method)
{
    if (g_str_equal(method, "StopUnit"))
        return systemd->stopped;
    return g_str_equal(method, "RestartUnit") ? systemd->restarted : systemd->started;
}

static void called(GDBusConnection *bus, const char *sender, const char *path,
                   const char *interface, const char *method, GVariant *parameters,
                   GDBusMethodInvocation *invocation, void *data)
{
    FakeSystemd *systemd = data;
    const char *unit;

    (void)bus;
    (void)sender;
    (void)path;
    (void)interface;
    if (g_str_equal(method, "SetUnitProperties")) {
        set_properties(systemd, parameters, invocation);
        return;
    }
    if (g_str_equal(method, "RevertUnitFiles")) {
        revert(systemd, parameters, invocation);
        return;
    }
    if (g_str_equal(method, "StartTransientUnit")) {
        make(systemd, parameters, invocation);
        return;
    }
    if (g_str_equal(method, "ListUnitsByPatterns")) {
        list(systemd, parameters, invocation);
        return;
    }
    g_variant_get(parameters, "(&s&s)", &unit, NULL);
    if (g_str_equal(method, "StopUnit"))
        forget(systemd, unit);
    g_string_append_printf(record_of(systemd, method), "%s\n", unit);
    g_dbus_method_invocation_return_value(invocation, g_variant_new("(o)", "/job/1"));
}

static void acquired(GDBusConnection *bus, const char *name, void *data)
{
    (void)bus;
    (void)name;
    *(gboolean *)data = TRUE;
}

void fake_systemd_start(FakeSystemd *systemd, GTestDBus *daemon)
{
    static const GDBusInterfaceVTable vtable = {.method_call = called};
    g_autoptr(GDBusNodeInfo) info = g_dbus_node_info_new_for_xml(xml, NULL);
    gboolean ready = FALSE;

    systemd->stopped = g_string_new(NULL);
    systemd->started = g_string_new(NULL);
    systemd->restarted = g_string_new(NULL);
    systemd->made = g_string_new(NULL);
    systemd->set = g_string_new(NULL);
    systemd->reverted = g_string_new(NULL);
    systemd->units = g_ptr_array_new_with_free_func(g_free);
    systemd->refuses = FALSE;
    systemd->bus =
        g_dbus_connection_new_for_address_sync(g_test_dbus_get_bus_address(daemon),
                                               G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT |
                                                   G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION,
                                               NULL, NULL, NULL);
    g_assert_nonnull(systemd->bus);
    systemd->object =
        g_dbus_connection_register_object(systemd->bus, "/org/freedesktop/systemd1",
                                          info->interfaces[0], &vtable, systemd, NULL, NULL);
    systemd->owner =
        g_bus_own_name_on_connection(systemd->bus, "org.freedesktop.systemd1",
                                     G_BUS_NAME_OWNER_FLAGS_NONE, acquired, NULL, &ready, NULL);
    while (!ready)
        g_main_context_iteration(NULL, TRUE);
}

void fake_systemd_stop(FakeSystemd *systemd)
{
    g_bus_unown_name(systemd->owner);
    g_dbus_connection_unregister_object(systemd->bus, systemd->object);
    g_dbus_connection_close_sync(systemd->bus, NULL, NULL);
    g_object_unref(systemd->bus);
    g_string_free(systemd->stopped, TRUE);
    g_string_free(systemd->started, TRUE);
    g_string_free(systemd->restarted, TRUE);
    g_string_free(systemd->made, TRUE);
    g_string_free(systemd->set, TRUE);
    g_string_free(systemd->reverted, TRUE);
    g_ptr_array_unref(systemd->units);
}
