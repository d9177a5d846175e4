/* SPDX-License-Identifier: MIT */
#include "tests/unit/host-agent/fake_polkit.h"

#include <pwd.h>
#include <unistd.h>

#include "host-agent/daemon/host/authority.h"

static const char xml[] = "<node><interface name='org.freedesktop.PolicyKit1.Authority'>"
                          "<method name='CheckAuthorization'>"
                          "<arg type='(sa{sv})' direction='in'/><arg type='s' direction='in'/>"
                          "<arg type='a{ss}' direction='in'/><arg type='u' direction='in'/>"
                          "<arg type='s' direction='in'/><arg type='(bba{ss})' direction='out'/>"
                          "</method></interface></node>";

static void answer(GDBusMethodInvocation *invocation, gboolean may)
{
    g_dbus_method_invocation_return_value(invocation,
                                          g_variant_new("((bba{ss}))", may, FALSE, NULL));
}

static void called(GDBusConnection *bus, const char *sender, const char *path,
                   const char *interface, const char *method, GVariant *parameters,
                   GDBusMethodInvocation *invocation, void *data)
{
    FakePolkit *polkit = data;
    const char *action;
    gboolean may;

    (void)bus;
    (void)sender;
    (void)path;
    (void)interface;
    (void)method;
    g_variant_get_child(parameters, 1, "&s", &action);
    may = g_str_equal(action, ACTION_USE_OWN_TENANT);
    if (may && polkit->holds)
        g_ptr_array_add(polkit->held, invocation);
    else
        answer(invocation, may);
}

static gboolean is_own_user(GDBusMessage *message)
{
    GVariant *body = g_dbus_message_get_body(message);
    guint32 uid;

    if (!body || !g_variant_is_of_type(body, G_VARIANT_TYPE("(u)")))
        return FALSE;
    g_variant_get(body, "(u)", &uid);
    return uid == geteuid();
}

/* The bus says who calls: the test's own user. Runs in a thread of the connection. */
static GDBusMessage *change_user(GDBusConnection *bus, GDBusMessage *message, gboolean incoming,
                                 void *data)
{
    GDBusMessage *changed;

    (void)bus;
    if (!incoming || g_strcmp0(g_dbus_message_get_sender(message), "org.freedesktop.DBus") != 0 ||
        g_dbus_message_get_message_type(message) != G_DBUS_MESSAGE_TYPE_METHOD_RETURN ||
        !is_own_user(message))
        return message;
    changed = g_dbus_message_copy(message, NULL);
    g_object_unref(message);
    g_dbus_message_set_body(changed, g_variant_new("(u)", GPOINTER_TO_UINT(data)));
    return changed;
}

static void acquired(GDBusConnection *bus, const char *name, void *data)
{
    (void)bus;
    (void)name;
    *(gboolean *)data = TRUE;
}

void fake_polkit_hold(FakePolkit *polkit, gboolean holds)
{
    polkit->holds = holds;
    for (guint i = 0; !holds && i < polkit->held->len; i++)
        answer(g_ptr_array_index(polkit->held, i), TRUE);
    if (!holds)
        g_ptr_array_set_size(polkit->held, 0);
}

void fake_polkit_set_administrators(FakePolkit *polkit, gboolean are)
{
    if (are)
        g_dbus_connection_remove_filter(polkit->agent_bus, polkit->filter);
    else
        polkit->filter = g_dbus_connection_add_filter(polkit->agent_bus, change_user,
                                                      GUINT_TO_POINTER(polkit->uid), NULL);
}

void fake_polkit_start(FakePolkit *polkit, const AgentOnBus *at)
{
    static const GDBusInterfaceVTable vtable = {.method_call = called};
    g_autoptr(GDBusNodeInfo) info = g_dbus_node_info_new_for_xml(xml, NULL);
    const struct passwd *user = getpwnam(FAKE_USER);
    gboolean ready = FALSE;

    g_assert_nonnull(user);
    polkit->uid = user->pw_uid;
    polkit->holds = FALSE;
    polkit->held = g_ptr_array_new();
    /* The bus of this test ends before the process. */
    polkit->bus = g_bus_get_sync(G_BUS_TYPE_SYSTEM, NULL, NULL);
    g_assert_nonnull(polkit->bus);
    g_dbus_connection_set_exit_on_close(polkit->bus, FALSE);
    polkit->object =
        g_dbus_connection_register_object(polkit->bus, "/org/freedesktop/PolicyKit1/Authority",
                                          info->interfaces[0], &vtable, polkit, NULL, NULL);
    polkit->owner =
        g_bus_own_name_on_connection(polkit->bus, "org.freedesktop.PolicyKit1",
                                     G_BUS_NAME_OWNER_FLAGS_NONE, acquired, NULL, &ready, NULL);
    while (!ready)
        g_main_context_iteration(NULL, TRUE);
    polkit->agent_bus = at->bus;
    fake_polkit_set_administrators(polkit, FALSE);
}

void fake_polkit_stop(FakePolkit *polkit)
{
    fake_polkit_set_administrators(polkit, TRUE);
    g_bus_unown_name(polkit->owner);
    g_dbus_connection_unregister_object(polkit->bus, polkit->object);
    g_object_unref(polkit->bus);
    g_ptr_array_unref(polkit->held);
}
