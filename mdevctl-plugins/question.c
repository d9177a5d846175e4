/* SPDX-License-Identifier: MIT */
#include "mdevctl-plugins/question.h"

#include <gio/gio.h>

#include "lib/bus.h"

#define TIMEOUT_MS 2000

/**
 * Question - a call that waits for its answer
 * @over: answered, or too late
 */
typedef struct {
    GVariant *parameters;
    GCancellable *cancellable;
    gboolean over;
    GError *error;
} Question;

/* Of the type that vgpud's requests have for it. Floating. */
static GVariant *value_of(const SliceKey *key, const char *text)
{
    guint64 number = g_ascii_strtoull(text, NULL, 10);
    char type = slice_key_asked_as(key);

    return type == 's'   ? g_variant_new_string(text)
           : type == 't' ? g_variant_new_uint64(number)
                         : g_variant_new_uint32((guint32)number);
}

/* The display counts nowhere, so vgpud is not asked about it. */
static GVariant *parameters_of(const Call *call, const char *action, const Wanted *wanted)
{
    const char *window = wanted_value(wanted, "window_bytes");
    const Attribute *list;
    guint count = attributes_get(&list);
    GVariantDict options;

    g_variant_dict_init(&options, NULL);
    g_variant_dict_insert(&options, "Action", "s", action);
    g_variant_dict_insert(&options, "Autostart", "b", wanted->autostart);
    if (window)
        g_variant_dict_insert(&options, "Window", "t", g_ascii_strtoull(window, NULL, 10));
    for (guint i = 0; i < count; i++)
        if (list[i].key && list[i].key->uses & SLICE_KEY_DEFINITION && wanted->values[i])
            g_variant_dict_insert_value(&options, list[i].key->name,
                                        value_of(list[i].key, wanted->values[i]));
    return g_variant_ref_sink(g_variant_new("(sss@a{sv})", call->uuid, call->parent, call->type,
                                            g_variant_dict_end(&options)));
}

static void definition_answered(GObject *bus, GAsyncResult *answer, void *data)
{
    Question *question = data;
    g_autoptr(GVariant) result =
        g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), answer, &question->error);

    question->over = TRUE;
}

static void got_bus(GObject *source, GAsyncResult *answer, void *data)
{
    Question *question = data;
    g_autoptr(GDBusConnection) bus = g_bus_get_finish(answer, &question->error);

    (void)source;
    if (!bus) {
        question->over = TRUE;
        return;
    }
    g_dbus_connection_set_exit_on_close(bus, FALSE);
    g_dbus_connection_call(bus, VGPU_BUS_NAME, VGPU_MANAGER_PATH, VGPU_MANAGER_INTERFACE,
                           "CheckDefinition", question->parameters, G_VARIANT_TYPE_UNIT,
                           G_DBUS_CALL_FLAGS_NO_AUTO_START, TIMEOUT_MS, question->cancellable,
                           definition_answered, question);
}

static gboolean too_late(void *data)
{
    Question *question = data;

    g_cancellable_cancel(question->cancellable);
    return G_SOURCE_CONTINUE;
}

/* vgpud has checked it and refuses. Other errors mean that it could not be asked. */
static gboolean is_refusal(const GError *error)
{
    return error && error->domain == AGENT_ERROR &&
           !g_error_matches(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED);
}

static void say_unasked(const GError *error)
{
    gboolean slow = g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED) ||
                    g_error_matches(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);

    g_printerr("ledger and quotas were not checked: vgpud %s; the driver's own limits apply\n",
               slow ? "does not answer" : "can't be reached (\"systemctl status vgpud\" says why)");
}

gboolean question_ask(const Call *call, const char *action, const Wanted *wanted, GError **error)
{
    Question question = {
        .parameters = parameters_of(call, action, wanted),
        .cancellable = g_cancellable_new(),
    };
    guint timer = g_timeout_add(TIMEOUT_MS, too_late, &question);
    gboolean refused;

    /* Registers the errors, so that they arrive with their own codes. */
    (void)AGENT_ERROR;
    g_bus_get(G_BUS_TYPE_SYSTEM, question.cancellable, got_bus, &question);
    while (!question.over)
        g_main_context_iteration(NULL, TRUE);
    g_source_remove(timer);
    g_variant_unref(question.parameters);
    g_object_unref(question.cancellable);
    refused = is_refusal(question.error);
    if (refused) {
        g_dbus_error_strip_remote_error(question.error);
        g_propagate_error(error, question.error);
        return FALSE;
    }
    if (question.error)
        say_unasked(question.error);
    g_clear_error(&question.error);
    return TRUE;
}
