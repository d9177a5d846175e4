/* SPDX-License-Identifier: MIT */
#include "lib/bus.h"

#include <glib.h>
#include <string.h>

GQuark agent_error_quark(void)
{
    static gsize quark;
    static const GDBusErrorEntry entries[] = {
        {AGENT_ERROR_FAILED, VGPU_BUS_NAME ".Error.Failed"},
        {AGENT_ERROR_INVALID, VGPU_BUS_NAME ".Error.InvalidArgument"},
        {AGENT_ERROR_NOT_FOUND, VGPU_BUS_NAME ".Error.NotFound"},
        {AGENT_ERROR_NOT_AUTHORIZED, VGPU_BUS_NAME ".Error.NotAuthorized"},
        {AGENT_ERROR_IN_USE, VGPU_BUS_NAME ".Error.InUse"},
        {AGENT_ERROR_NO_ROOM, VGPU_BUS_NAME ".Error.NoRoom"},
        {AGENT_ERROR_NO_ROOM_NOW, VGPU_BUS_NAME ".Error.NoRoomNow"},
        {AGENT_ERROR_QUOTA, VGPU_BUS_NAME ".Error.Quota"},
        {AGENT_ERROR_EXISTS, VGPU_BUS_NAME ".Error.Exists"},
    };

    g_dbus_error_register_error_domain("vgpu-agent-error", &quark, entries, G_N_ELEMENTS(entries));
    return (GQuark)quark;
}

/* vgpud, for a program that must not wait for it. */

#define MANAGER VGPU_BUS_NAME ".Manager"
#define GPU     VGPU_BUS_NAME ".Gpu"

/* mdevctl is given a minute, and a GPU's driver may take as long to detach. */
#define CALL_TIMEOUT_MS 90000

struct AgentClient {
    GDBusConnection *bus;
};

/**
 * Connecting - the work of a thread, because a call to a bus that does not answer has no timeout
 */
typedef struct {
    GMutex mutex;
    GCond done;
    gboolean is_done;
    gboolean is_abandoned;
    GDBusConnection *bus;
    GError *error;
} Connecting;

static void connecting_free(Connecting *connecting)
{
    g_clear_object(&connecting->bus);
    g_clear_error(&connecting->error);
    g_mutex_clear(&connecting->mutex);
    g_cond_clear(&connecting->done);
    g_free(connecting);
}

/*
 * A rootless container's hook is in a user namespace and appears to itself as root; the bus knows
 * the real user.
 */
static GDBusConnection *connect_system_bus(GError **error)
{
    g_autofree char *address = g_dbus_address_get_for_bus_sync(G_BUS_TYPE_SYSTEM, NULL, error);

    if (!address)
        return NULL;
    return g_dbus_connection_new_for_address_sync(
        address,
        G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT |
            G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION |
            G_DBUS_CONNECTION_FLAGS_CROSS_NAMESPACE,
        NULL, NULL, error);
}

static void *connect_bus(void *data)
{
    Connecting *connecting = data;
    gboolean abandoned;

    connecting->bus = connect_system_bus(&connecting->error);
    g_mutex_lock(&connecting->mutex);
    connecting->is_done = TRUE;
    abandoned = connecting->is_abandoned;
    g_cond_signal(&connecting->done);
    g_mutex_unlock(&connecting->mutex);
    if (abandoned)
        connecting_free(connecting);
    return NULL;
}

/* Waits until @end; the connection, or NULL. */
static GDBusConnection *wait_for(Connecting *connecting, gint64 end, GError **error)
{
    GDBusConnection *bus = NULL;
    gboolean in_time = TRUE;

    g_mutex_lock(&connecting->mutex);
    while (!connecting->is_done && in_time)
        in_time = g_cond_wait_until(&connecting->done, &connecting->mutex, end);
    connecting->is_abandoned = !connecting->is_done;
    g_mutex_unlock(&connecting->mutex);
    if (connecting->is_abandoned) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "D-Bus does not answer");
        return NULL;
    }
    bus = g_steal_pointer(&connecting->bus);
    if (!bus)
        g_propagate_error(error, g_steal_pointer(&connecting->error));
    connecting_free(connecting);
    return bus;
}

static GDBusConnection *bus_until(gint64 end, GError **error)
{
    Connecting *connecting = g_new0(Connecting, 1);

    g_mutex_init(&connecting->mutex);
    g_cond_init(&connecting->done);
    g_thread_unref(g_thread_new("bus", connect_bus, connecting));
    return wait_for(connecting, end, error);
}

/* Its version: reading it needs no right, and its main loop answers. */
static gboolean agent_answers(GDBusConnection *bus, gboolean start, gint64 end, GError **error)
{
    int left = (int)((end - g_get_monotonic_time()) / 1000);
    g_autoptr(GVariant) answer = g_dbus_connection_call_sync(
        bus, VGPU_BUS_NAME, VGPU_MANAGER_PATH, "org.freedesktop.DBus.Properties", "Get",
        g_variant_new("(ss)", MANAGER, "Version"), NULL,
        start ? G_DBUS_CALL_FLAGS_NONE : G_DBUS_CALL_FLAGS_NO_AUTO_START, MAX(left, 1), NULL,
        error);

    return answer != NULL;
}

static gboolean is_on_bus(GDBusConnection *bus)
{
    g_autoptr(GVariant) answer = g_dbus_connection_call_sync(
        bus, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
        "NameHasOwner", g_variant_new("(s)", VGPU_BUS_NAME), NULL, G_DBUS_CALL_FLAGS_NONE,
        AGENT_PATIENCE_MS, NULL, NULL);
    gboolean has = FALSE;

    if (answer)
        g_variant_get(answer, "(b)", &has);
    return has;
}

/*
 * @patience_ms: to wait for a connection and an answer
 * @start_ms: if vgpud has to be started first
 */
static AgentClient *open_within(gboolean start, gint64 patience_ms, gint64 start_ms, GError **error)
{
    gint64 begin = g_get_monotonic_time();
    gint64 end = begin + patience_ms * 1000;
    g_autoptr(AgentClient) link = g_new0(AgentClient, 1);
    g_autoptr(GError) cause = NULL;

    link->bus = bus_until(end, &cause);
    if (link->bus)
        g_dbus_connection_set_exit_on_close(link->bus, FALSE);
    if (link->bus && start_ms > patience_ms && !is_on_bus(link->bus))
        end = begin + start_ms * 1000;
    if (link->bus && agent_answers(link->bus, start, end, &cause))
        return g_steal_pointer(&link);
    g_dbus_error_strip_remote_error(cause);
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_CONNECTED,
                "vgpud can't be reached (%s); \"systemctl status vgpud\" says why", cause->message);
    return NULL;
}

AgentClient *agent_client_open(gboolean start, GError **error)
{
    return open_within(start, AGENT_PATIENCE_MS, AGENT_PATIENCE_MS, error);
}

AgentClient *agent_client_open_at_start(GError **error)
{
    return open_within(TRUE, AGENT_PATIENCE_MS, AGENT_START_PATIENCE_MS, error);
}

AgentClient *agent_client_open_patiently(GError **error)
{
    return open_within(TRUE, AGENT_START_PATIENCE_MS, AGENT_START_PATIENCE_MS, error);
}

void agent_client_free(AgentClient *link)
{
    g_clear_object(&link->bus);
    g_free(link);
}

GVariant *agent_client_get_all(AgentClient *link, const char *path, const char *interface,
                               const char *method, GVariant *parameters, int milliseconds,
                               GError **error)
{
    GVariant *answer;

    /* Makes vgpud's errors arrive with their own codes. */
    (void)AGENT_ERROR;
    answer =
        g_dbus_connection_call_sync(link->bus, VGPU_BUS_NAME, path, interface, method, parameters,
                                    NULL, G_DBUS_CALL_FLAGS_NONE, milliseconds, NULL, error);
    if (!answer && error) {
        g_dbus_error_strip_remote_error(*error);
        if (g_error_matches(*error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT))
            g_prefix_error(error, "vgpud has not answered within %d s: ", milliseconds / 1000);
    }
    return answer;
}

GVariant *agent_client_get(AgentClient *link, const char *path, const char *interface,
                           const char *method, GVariant *parameters, int milliseconds,
                           GError **error)
{
    g_autoptr(GVariant) answer =
        agent_client_get_all(link, path, interface, method, parameters, milliseconds, error);

    return answer ? g_variant_get_child_value(answer, 0) : NULL;
}

static gboolean call_agent(AgentClient *link, int milliseconds, const char *path,
                           const char *interface, const char *method, GVariant *parameters,
                           GError **error)
{
    g_autoptr(GVariant) answer =
        agent_client_get_all(link, path, interface, method, parameters, milliseconds, error);

    return answer != NULL;
}

gboolean agent_client_call(AgentClient *link, const char *method, GVariant *parameters,
                           GError **error)
{
    return agent_client_call_within(link, CALL_TIMEOUT_MS, method, parameters, error);
}

gboolean agent_client_call_within(AgentClient *link, int milliseconds, const char *method,
                                  GVariant *parameters, GError **error)
{
    return call_agent(link, milliseconds, VGPU_MANAGER_PATH, MANAGER, method, parameters, error);
}

gboolean agent_client_call_gpu(AgentClient *link, const char *address, const char *method,
                               GVariant *parameters, GError **error)
{
    g_autofree char *name = g_strdelimit(g_strdup(address), ":.", '_');
    g_autofree char *path = g_strconcat(VGPU_GPU_PATH "/", name, NULL);

    return call_agent(link, CALL_TIMEOUT_MS, path, GPU, method, parameters, error);
}

/* Changes in the journal. */

/* The value of @key, to its end; NULL: the state has no such member. To be freed. */
static char *value_of(char **state, const char *key, gsize length)
{
    for (; *state; state++)
        if (strncmp(*state, key, length) == 0 && (*state)[length] == '=')
            return g_strdup(*state + length + 1);
    return NULL;
}

static void add_change(GString *text, const char *key, gsize length, const char *from,
                       const char *to)
{
    if (g_strcmp0(from, to) == 0)
        return;
    g_string_append_printf(text, "%s%.*s %s -> %s", text->len ? AUDIT_BETWEEN : "", (int)length,
                           key, from && *from ? from : "-", to && *to ? to : "-");
}

char *audit_difference(const char *before, const char *after)
{
    g_auto(GStrv) from = g_strsplit(before, AUDIT_BETWEEN, -1);
    g_auto(GStrv) to = g_strsplit(after, AUDIT_BETWEEN, -1);
    GString *text = g_string_new(NULL);

    if (!*before && *after)
        g_string_append(text, "created");
    else if (*before && !*after)
        g_string_append(text, "removed");
    else
        for (char **at = to; *at; at++) {
            gsize length = strcspn(*at, "=");
            g_autofree char *old = value_of(from, *at, length);
            g_autofree char *new = value_of(to, *at, length);

            add_change(text, *at, length, old, new);
        }
    return g_string_free(text, FALSE);
}
