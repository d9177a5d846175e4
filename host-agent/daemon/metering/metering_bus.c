/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/metering/metering_bus.h"

#include <unistd.h>

#include "host-agent/daemon/host/authority.h"
#include "lib/bus.h"

#define ANSWER_MS (20 * 1000)

/**
 * patience - where it is not ANSWER_MS
 * @starts: the bus starts a meter that does not run
 */
static const struct {
    const char *method;
    int ms;
    gboolean starts;
} patience[] = {
    {"Report", 120 * 1000, TRUE}, /* somebody reads it, and a year of many slices takes its time */
    {"ListUse", 2 * 1000, FALSE}, /* a list is of use without it */
};

/**
 * MeteringBus
 * @meter: the unique name of the process that has begun last; NULL: none, or it has ended
 * @freed: ends what waits for an answer
 */
struct MeteringBus {
    Metering *metering;
    GDBusConnection *bus;
    guint object;
    char *meter;
    guint watch;
    GCancellable *freed;
};

static void meter_vanished(GDBusConnection *connection, const char *name, void *data)
{
    MeteringBus *bus = data;

    (void)connection;
    (void)name;
    g_clear_pointer(&bus->meter, g_free);
    g_message(
        "vgpu-meter has ended: the GPUs' health stays as it was told last, and what slices use is "
        "not known; \"systemctl status vgpu-meter\" shows why");
}

static void begin_metering(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    MeteringBus *bus = data;

    if (caller->uid != getuid()) {
        authority_refuse(invocation, caller, ACTION_ADMINISTER, "only vgpu-meter may call this");
        return;
    }
    if (bus->meter) {
        g_dbus_method_invocation_return_error(
            invocation, AGENT_ERROR, AGENT_ERROR_IN_USE,
            "another vgpu-meter runs already (%s); end one of them", bus->meter);
        return;
    }
    metering_begin_anew(bus->metering);
    g_clear_handle_id(&bus->watch, g_bus_unwatch_name);
    bus->meter = g_strdup(g_dbus_method_invocation_get_sender(invocation));
    bus->watch = g_bus_watch_name_on_connection(bus->bus, bus->meter, G_BUS_NAME_WATCHER_FLAGS_NONE,
                                                NULL, meter_vanished, bus, NULL);
    g_dbus_method_invocation_return_value(invocation, metering_state(bus->metering));
}

static void method_called(GDBusConnection *connection, const char *sender, const char *path,
                          const char *interface, const char *method, GVariant *arguments,
                          GDBusMethodInvocation *invocation, void *data)
{
    MeteringBus *bus = data;

    (void)connection;
    (void)path;
    (void)interface;
    if (g_str_equal(method, "Begin")) {
        authority_ask(invocation, ACTION_ADMINISTER, begin_metering, bus);
        return;
    }
    if (g_strcmp0(sender, bus->meter) != 0) {
        g_dbus_method_invocation_return_error(invocation, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED,
                                              "only vgpu-meter may call this, after Begin");
        return;
    }
    metering_call(bus->metering, method, arguments);
    g_dbus_method_invocation_return_value(invocation, NULL);
}

static const GDBusInterfaceVTable vtable = {.method_call = method_called};

static void emit_signal(void *data, const char *signal, GVariant *arguments)
{
    const MeteringBus *bus = data;

    if (bus->meter)
        g_dbus_connection_emit_signal(bus->bus, bus->meter, VGPU_METERING_PATH,
                                      VGPU_METERING_INTERFACE, signal, arguments, NULL);
}

typedef struct {
    MeterAnswerFunc func;
    void *data;
} Question;

/* An error of vgpu-meter's is passed on; others say nothing to whoever has asked. */
static GError *error_for_caller(GError *error)
{
    GError *own;

    g_dbus_error_strip_remote_error(error);
    if (error->domain == AGENT_ERROR)
        return error;
    own = g_error_new(AGENT_ERROR, AGENT_ERROR_FAILED,
                      "vgpu-meter does not answer (%s); \"systemctl status vgpu-meter\" shows why",
                      error->message);
    g_error_free(error);
    return own;
}

static void meter_answered(GObject *connection, GAsyncResult *result, void *data)
{
    g_autofree Question *question = data;
    GError *error = NULL;
    g_autoptr(GVariant) answer =
        g_dbus_connection_call_finish(G_DBUS_CONNECTION(connection), result, &error);

    if (error && !g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
        error = error_for_caller(error);
    if (!g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
        question->func(answer, error, question->data);
    g_clear_error(&error);
}

/* A job's end starts no meter: it ends, whether or not its use is known. */
static void ask_meter(void *data, const char *method, GVariant *arguments, MeterAnswerFunc func,
                      void *func_data)
{
    const MeteringBus *bus = data;
    GDBusCallFlags flags = G_DBUS_CALL_FLAGS_NO_AUTO_START;
    Question *question = g_new0(Question, 1);
    int ms = ANSWER_MS;

    question->func = func;
    question->data = func_data;
    for (guint i = 0; i < G_N_ELEMENTS(patience); i++) {
        if (!g_str_equal(patience[i].method, method))
            continue;
        ms = patience[i].ms;
        flags = patience[i].starts ? G_DBUS_CALL_FLAGS_NONE : flags;
    }
    g_dbus_connection_call(bus->bus, VGPU_METER_NAME, VGPU_METER_PATH, VGPU_METER_INTERFACE, method,
                           arguments, NULL, flags, ms, bus->freed, meter_answered, question);
}

MeterLink metering_bus_link(MeteringBus *bus)
{
    return (MeterLink){bus, emit_signal, ask_meter};
}

MeteringBus *metering_bus_new(Metering *metering, GDBusConnection *connection)
{
    MeteringBus *bus = g_new0(MeteringBus, 1);
    g_autoptr(GError) error = NULL;

    bus->metering = metering;
    bus->bus = g_object_ref(connection);
    bus->freed = g_cancellable_new();
    bus->object = g_dbus_connection_register_object(
        connection, VGPU_METERING_PATH, vgpu_metering_interface_info(), &vtable, bus, NULL, &error);
    if (error)
        g_warning("vgpu-meter cannot be served: %s", error->message);
    return bus;
}

void metering_bus_free(MeteringBus *bus)
{
    g_cancellable_cancel(bus->freed);
    g_object_unref(bus->freed);
    g_clear_handle_id(&bus->watch, g_bus_unwatch_name);
    if (bus->object)
        g_dbus_connection_unregister_object(bus->bus, bus->object);
    g_free(bus->meter);
    g_object_unref(bus->bus);
    g_free(bus);
}
