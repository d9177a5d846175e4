/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/agent_bus.h"

#include "host-agent/meter/meter.h"
#include "lib/bus.h"
#include "vgpu-host.h"

/**
 * AgentBus
 * @agent: vgpud's unique name; NULL: it does not run
 * @meter: NULL: vgpud has not been seen yet
 * @again: source of another Begin, or 0
 */
struct AgentBus {
    HostRoot *root;
    GDBusConnection *bus;
    void (*failed)(const char *why, void *data);
    void *data;
    char *agent;
    Meter *meter;
    guint watch;
    guint signals;
    guint object;
    guint name;
    guint again;
    GCancellable *freed;
};

#define BEGIN_AGAIN_S 5

static void signal_heard(GDBusConnection *connection, const char *sender, const char *path,
                         const char *interface, const char *signal, GVariant *arguments, void *data)
{
    const AgentBus *agent = data;

    (void)connection;
    (void)sender;
    (void)path;
    (void)interface;
    if (agent->meter)
        meter_hear(agent->meter, signal, arguments);
}

/* vgpud that has ended is told all when it is there again. */
static void call_agent(void *data, const char *method, GVariant *arguments)
{
    const AgentBus *agent = data;

    if (agent->agent)
        g_dbus_connection_call(agent->bus, agent->agent, VGPU_METERING_PATH,
                               VGPU_METERING_INTERFACE, method, arguments, NULL,
                               G_DBUS_CALL_FLAGS_NO_AUTO_START, -1, NULL, NULL, NULL);
}

static void answer_call(GVariant *answer, const GError *error, void *data)
{
    GDBusMethodInvocation *invocation = data;

    if (error)
        g_dbus_method_invocation_return_gerror(invocation, error);
    else
        g_dbus_method_invocation_return_value(invocation, answer);
}

static void method_called(GDBusConnection *connection, const char *sender, const char *path,
                          const char *interface, const char *method, GVariant *arguments,
                          GDBusMethodInvocation *invocation, void *data)
{
    const AgentBus *agent = data;

    (void)connection;
    (void)path;
    (void)interface;
    if (g_strcmp0(sender, agent->agent) == 0)
        meter_answer(agent->meter, method, arguments, answer_call, invocation);
    else
        g_dbus_method_invocation_return_error(invocation, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED,
                                              "only vgpud may call this");
}

static const GDBusInterfaceVTable vtable = {.method_call = method_called};

static void name_lost(GDBusConnection *connection, const char *name, void *data)
{
    const AgentBus *agent = data;

    (void)connection;
    (void)name;
    agent->failed("cannot take the name " VGPU_METER_NAME
                  " on D-Bus: another process owns it, or this user may not",
                  agent->data);
}

/* From now on vgpud can ask. */
static void serve_methods(AgentBus *agent)
{
    g_autoptr(GError) error = NULL;

    agent->object = g_dbus_connection_register_object(
        agent->bus, VGPU_METER_PATH, vgpu_meter_interface_info(), &vtable, agent, NULL, &error);
    if (!agent->object) {
        agent->failed(error->message, agent->data);
        return;
    }
    agent->name = g_bus_own_name_on_connection(
        agent->bus, VGPU_METER_NAME, G_BUS_NAME_OWNER_FLAGS_NONE, NULL, name_lost, agent, NULL);
}

static void begin_meter(AgentBus *agent, GVariant *state)
{
    const AgentLink link = {agent, call_agent};
    g_autoptr(GError) error = NULL;

    if (agent->meter) {
        meter_begin_again(agent->meter, state);
    } else {
        agent->meter = meter_new(agent->root, &link, state, &error);
        if (!agent->meter) {
            agent->failed(error->message, agent->data);
            return;
        }
        serve_methods(agent);
    }
    meter_set_agent_up(agent->meter, TRUE);
}

static void ask_to_begin(AgentBus *agent);

static gboolean begin_again(void *data)
{
    AgentBus *agent = data;

    agent->again = 0;
    ask_to_begin(agent);
    return G_SOURCE_REMOVE;
}

/* vgpud may be busy for longer than a call waits. */
static void agent_began(GObject *connection, GAsyncResult *result, void *data)
{
    AgentBus *agent = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) state =
        g_dbus_connection_call_finish(G_DBUS_CONNECTION(connection), result, &error);

    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
        return;
    if (state) {
        begin_meter(agent, state);
        return;
    }
    g_warning("vgpud does not tell its meter what there is: %s; it is asked again", error->message);
    if (agent->agent && !agent->again)
        agent->again = g_timeout_add_seconds(BEGIN_AGAIN_S, begin_again, agent);
}

static void ask_to_begin(AgentBus *agent)
{
    g_dbus_connection_call(agent->bus, agent->agent, VGPU_METERING_PATH, VGPU_METERING_INTERFACE,
                           "Begin", NULL, NULL, G_DBUS_CALL_FLAGS_NO_AUTO_START, -1, agent->freed,
                           agent_began, agent);
}

static void agent_appeared(GDBusConnection *connection, const char *name, const char *owner,
                           void *data)
{
    AgentBus *agent = data;

    (void)name;
    g_free(agent->agent);
    agent->agent = g_strdup(owner);
    agent->signals = g_dbus_connection_signal_subscribe(
        connection, owner, VGPU_METERING_INTERFACE, NULL, VGPU_METERING_PATH, NULL,
        G_DBUS_SIGNAL_FLAGS_NONE, signal_heard, agent, NULL);
    ask_to_begin(agent);
}

static void agent_vanished(GDBusConnection *connection, const char *name, void *data)
{
    AgentBus *agent = data;

    (void)name;
    if (agent->signals)
        g_dbus_connection_signal_unsubscribe(connection, agent->signals);
    agent->signals = 0;
    g_clear_handle_id(&agent->again, g_source_remove);
    g_clear_pointer(&agent->agent, g_free);
    if (agent->meter)
        meter_set_agent_up(agent->meter, FALSE);
}

AgentBus *agent_bus_new(HostRoot *root, GDBusConnection *bus,
                        void (*failed)(const char *why, void *data), void *data)
{
    AgentBus *agent = g_new0(AgentBus, 1);

    agent->root = root;
    agent->bus = g_object_ref(bus);
    agent->failed = failed;
    agent->data = data;
    agent->freed = g_cancellable_new();
    agent->watch = g_bus_watch_name_on_connection(bus, VGPU_BUS_NAME, G_BUS_NAME_WATCHER_FLAGS_NONE,
                                                  agent_appeared, agent_vanished, agent, NULL);
    return agent;
}

void agent_bus_free(AgentBus *agent)
{
    g_cancellable_cancel(agent->freed);
    g_object_unref(agent->freed);
    g_bus_unwatch_name(agent->watch);
    g_clear_handle_id(&agent->again, g_source_remove);
    g_clear_handle_id(&agent->name, g_bus_unown_name);
    if (agent->object)
        g_dbus_connection_unregister_object(agent->bus, agent->object);
    if (agent->signals)
        g_dbus_connection_signal_unsubscribe(agent->bus, agent->signals);
    g_clear_pointer(&agent->meter, meter_free);
    g_free(agent->agent);
    g_object_unref(agent->bus);
    g_free(agent);
}
