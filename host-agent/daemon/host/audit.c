/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/host/audit.h"

#include <string.h>
#include <sys/uio.h>

/* Entries of the audit. */

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "lib/bus.h"

static AuditDescribe describe;
static void *describe_data;
static AuditSink sink;
static void *sink_data;

void audit_set_describe(AuditDescribe func, void *data)
{
    describe = func;
    describe_data = data;
}

gboolean audit_is_on(void)
{
    return describe != NULL;
}

void audit_set_sink(AuditSink func, void *data)
{
    sink = func;
    sink_data = data;
}

/* The same; @name becomes its own name. */
static char *audit_state_and_name(AuditKind kind, char **name, const char *user)
{
    char *state = describe ? describe(kind, name, user, describe_data) : NULL;

    return state ? state : g_strdup("");
}

char *audit_state_of(AuditKind kind, const char *name)
{
    g_autofree char *own = g_strdup(name);

    return audit_state_and_name(kind, &own, NULL);
}

static void send(const char *const *fields)
{
    gsize count = g_strv_length((char **)fields);
    g_autofree struct iovec *list = g_new0(struct iovec, count);

    if (sink) {
        sink(fields, sink_data);
        return;
    }
    for (gsize i = 0; i < count; i++)
        list[i] = (struct iovec){(void *)fields[i], strlen(fields[i])};
    sd_journal_sendv(list, (int)count);
}

void audit_write(const AuditEntry *entry)
{
    g_autofree char *result =
        entry->error ? g_strdup_printf("failed: %s", entry->error->message) : g_strdup("ok");
    g_autofree char *change = audit_difference(entry->before, entry->after);
    g_autoptr(GStrvBuilder) fields = g_strv_builder_new();
    g_auto(GStrv) list = NULL;

    g_strv_builder_take(fields,
                        g_strdup_printf("MESSAGE=%s: %s %s by %s%s%s", entry->what, entry->object,
                                        result, entry->who, *change ? ": " : "", change));
    g_strv_builder_add(fields, "MESSAGE_ID=" AUDIT_MESSAGE_ID);
    g_strv_builder_add(fields, "PRIORITY=5");
    g_strv_builder_take(fields, g_strconcat(AUDIT_METHOD "=", entry->what, NULL));
    g_strv_builder_take(fields, g_strconcat(AUDIT_OBJECT "=", entry->object, NULL));
    g_strv_builder_take(fields, g_strconcat(AUDIT_USER "=", entry->who, NULL));
    if (entry->uid)
        g_strv_builder_take(fields, g_strdup_printf(AUDIT_UID "=%u", *entry->uid));
    g_strv_builder_take(fields, g_strconcat(AUDIT_BEFORE "=", entry->before, NULL));
    g_strv_builder_take(fields, g_strconcat(AUDIT_AFTER "=", entry->after, NULL));
    g_strv_builder_take(fields, g_strconcat(AUDIT_RESULT "=", result, NULL));
    list = g_strv_builder_end(fields);
    send((const char *const *)list);
}

void audit_write_change(const char *who, const char *what, AuditKind kind, const char *object,
                        const char *before, const GError *error)
{
    g_autofree char *name = g_strdup(object);
    g_autofree char *after = audit_state_and_name(kind, &name, NULL);

    if (audit_is_on() && (error || !g_str_equal(before, after)))
        audit_write(&(AuditEntry){.who = who,
                                  .what = what,
                                  .object = name,
                                  .before = before,
                                  .after = after,
                                  .error = error});
}

/*
 * A filter in a thread of the connection sees each answer when it leaves for the bus; the main loop
 * does the rest. So methods do not depend on the audit, and answer in any way. GLib makes no answer
 * to a call that wants none, so such a call is passed on as one that does, and the filter drops its
 * answer.
 */

/* The methods that change something, and the kind of their first argument. */
static const struct {
    const char *method;
    AuditKind kind;
    gboolean creates;
} methods[] = {
    {"CreateVgpus", AUDIT_SLICE, TRUE},   {"CreateSlice", AUDIT_SLICE, TRUE},
    {"CreateSlices", AUDIT_SLICE, TRUE},  {"RunSlice", AUDIT_SLICE, TRUE},
    {"SetVgpu", AUDIT_SLICE, FALSE},      {"SetSlice", AUDIT_SLICE, FALSE},
    {"StartVgpu", AUDIT_SLICE, FALSE},    {"StopVgpu", AUDIT_SLICE, FALSE},
    {"RemoveVgpu", AUDIT_SLICE, FALSE},   {"RemoveSlice", AUDIT_SLICE, FALSE},
    {"SetTenant", AUDIT_TENANT, FALSE},   {"RemoveTenant", AUDIT_TENANT, FALSE},
    {"SetMode", AUDIT_GPU, FALSE},        {"Drain", AUDIT_GPU, FALSE},
    {"ClearHealth", AUDIT_GPU, FALSE},    {"Reload", AUDIT_CONFIG, FALSE},
    {"ApplyConfig", AUDIT_CONFIG, FALSE}, {"ClaimSlice", AUDIT_SLICE, FALSE},
    {"SuspendSlice", AUDIT_SLICE, FALSE}, {"ResumeSlice", AUDIT_SLICE, FALSE},
    {"SetPool", AUDIT_GPU, FALSE},
};

/**
 * Entry - a running call
 * @caller: its name on the bus; with @serial it identifies the call
 * @answer: NULL until it is sent
 */
typedef struct {
    char *caller;
    guint serial;
    guint method;
    char *user;
    guint32 uid;
    char *object;
    char *before;
    GDBusMessage *answer;
} Entry;

/* Of Entry. The filter's thread removes them. */
static GMutex lock;
static GPtrArray *pending;
/* Calls that want no answer, by call_id(). */
static GHashTable *silent;

static void entry_free(Entry *entry)
{
    g_free(entry->caller);
    g_free(entry->user);
    g_free(entry->object);
    g_free(entry->before);
    g_clear_object(&entry->answer);
    g_free(entry);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Entry, entry_free)

static void write_entry(const Entry *entry, const char *object, const char *before,
                        const char *after)
{
    g_autoptr(GError) error = NULL;

    if (g_dbus_message_to_gerror(entry->answer, &error))
        g_dbus_error_strip_remote_error(error);
    audit_write(&(AuditEntry){.who = entry->user,
                              .uid = &entry->uid,
                              .what = methods[entry->method].method,
                              .object = object,
                              .before = before,
                              .after = after,
                              .error = error});
}

/* The object that a method has created. @dict: a{sv} of its answer. */
static void write_created(const Entry *entry, GVariant *dict)
{
    g_autofree char *uuid = NULL;
    g_autofree char *after = NULL;

    if (!g_variant_lookup(dict, "Uuid", "s", &uuid))
        return;
    after = audit_state_and_name(AUDIT_SLICE, &uuid, NULL);
    if (*after)
        write_entry(entry, uuid, "", after);
}

static void write_all_created(const Entry *entry)
{
    GVariant *body = g_dbus_message_get_body(entry->answer);
    g_autoptr(GVariant) first =
        body && g_variant_n_children(body) ? g_variant_get_child_value(body, 0) : NULL;

    if (!first)
        return;
    if (g_variant_is_of_type(first, G_VARIANT_TYPE_VARDICT)) {
        write_created(entry, first);
        return;
    }
    for (gsize i = 0;
         g_variant_is_of_type(first, G_VARIANT_TYPE("aa{sv}")) && i < g_variant_n_children(first);
         i++) {
        g_autoptr(GVariant) dict = g_variant_get_child_value(first, i);

        write_created(entry, dict);
    }
}

static gboolean finish(void *data)
{
    g_autoptr(Entry) entry = data;
    AuditKind kind = methods[entry->method].kind;
    g_autofree char *after = NULL;

    if (!audit_is_on())
        return G_SOURCE_REMOVE;
    if (methods[entry->method].creates) {
        write_all_created(entry);
        return G_SOURCE_REMOVE;
    }
    after = audit_state_and_name(kind, &entry->object, entry->user);
    if (kind == AUDIT_CONFIG
            ? g_dbus_message_get_message_type(entry->answer) == G_DBUS_MESSAGE_TYPE_METHOD_RETURN
            : !g_str_equal(entry->before, after))
        write_entry(entry, entry->object, entry->before, after);
    return G_SOURCE_REMOVE;
}

/* The call that @message answers, no longer pending; NULL: none of ours. */
static Entry *take(GDBusMessage *message)
{
    const char *caller = g_dbus_message_get_destination(message);
    guint serial = g_dbus_message_get_reply_serial(message);
    Entry *found = NULL;

    g_mutex_lock(&lock);
    for (guint i = 0; !found && pending && i < pending->len; i++) {
        Entry *entry = g_ptr_array_index(pending, i);

        if (entry->serial != serial || g_strcmp0(entry->caller, caller) != 0)
            continue;
        found = entry;
        g_ptr_array_remove_index_fast(pending, i);
    }
    g_mutex_unlock(&lock);
    return found;
}

/* To be freed. */
static char *call_id(const char *caller, guint serial)
{
    return g_strdup_printf("%s %u", caller, serial);
}

static gboolean is_audited(const char *method)
{
    for (guint i = 0; i < G_N_ELEMENTS(methods); i++)
        if (g_str_equal(method, methods[i].method))
            return TRUE;
    return FALSE;
}

static GDBusMessage *see_call(GDBusMessage *call)
{
    GDBusMessageFlags flags = g_dbus_message_get_flags(call);
    GDBusMessage *copy;

    if (g_dbus_message_get_message_type(call) != G_DBUS_MESSAGE_TYPE_METHOD_CALL ||
        !(flags & G_DBUS_MESSAGE_FLAGS_NO_REPLY_EXPECTED) ||
        !is_audited(g_dbus_message_get_member(call)))
        return call;
    copy = g_dbus_message_copy(call, NULL);
    if (!copy)
        return call;
    g_dbus_message_set_flags(copy, flags & ~G_DBUS_MESSAGE_FLAGS_NO_REPLY_EXPECTED);
    g_mutex_lock(&lock);
    if (!silent)
        silent = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_hash_table_add(silent,
                     call_id(g_dbus_message_get_sender(call), g_dbus_message_get_serial(call)));
    g_mutex_unlock(&lock);
    g_object_unref(call);
    return copy;
}

/* It answers a call that wants no answer. */
static gboolean take_silent(GDBusMessage *answer)
{
    g_autofree char *id =
        call_id(g_dbus_message_get_destination(answer), g_dbus_message_get_reply_serial(answer));
    gboolean found;

    g_mutex_lock(&lock);
    found = silent && g_hash_table_remove(silent, id);
    g_mutex_unlock(&lock);
    return found;
}

static GDBusMessage *see_answer(GDBusMessage *answer)
{
    gboolean unwanted;
    Entry *entry;

    if (!g_dbus_message_get_reply_serial(answer))
        return answer;
    unwanted = take_silent(answer);
    entry = take(answer);
    if (entry) {
        entry->answer = g_object_ref(answer);
        g_idle_add(finish, entry);
    }
    if (unwanted)
        g_clear_object(&answer);
    return answer;
}

static GDBusMessage *see(GDBusConnection *bus, GDBusMessage *message, gboolean incoming, void *data)
{
    (void)bus;
    (void)data;
    return incoming ? see_call(message) : see_answer(message);
}

void audit_watch(GDBusConnection *bus)
{
    g_dbus_connection_add_filter(bus, see, NULL, NULL);
}

static char *object_of(GDBusMethodInvocation *invocation, AuditKind kind)
{
    GVariant *arguments = g_dbus_method_invocation_get_parameters(invocation);
    g_autoptr(GVariant) first = NULL;

    if (kind == AUDIT_GPU)
        return g_strdup(g_dbus_method_invocation_get_object_path(invocation));
    if (kind == AUDIT_CONFIG)
        return g_strdup("/etc/vgpu");
    first = g_variant_get_child_value(arguments, 0);
    return g_variant_is_of_type(first, G_VARIANT_TYPE_STRING) ? g_variant_dup_string(first, NULL)
                                                              : g_strdup("");
}

static void add(GDBusMethodInvocation *invocation, const Caller *caller, guint method)
{
    Entry *entry = g_new0(Entry, 1);

    entry->method = method;
    entry->caller = g_strdup(g_dbus_method_invocation_get_sender(invocation));
    entry->serial = g_dbus_message_get_serial(g_dbus_method_invocation_get_message(invocation));
    entry->user = g_strdup(caller->user);
    entry->uid = caller->uid;
    entry->object = object_of(invocation, methods[method].kind);
    entry->before = methods[method].creates
                        ? g_strdup("")
                        : audit_state_and_name(methods[method].kind, &entry->object, entry->user);
    g_mutex_lock(&lock);
    if (!pending)
        pending = g_ptr_array_new();
    g_ptr_array_add(pending, entry);
    g_mutex_unlock(&lock);
}

guint audit_pending(void)
{
    guint count;

    g_mutex_lock(&lock);
    count = (pending ? pending->len : 0) + (silent ? g_hash_table_size(silent) : 0);
    g_mutex_unlock(&lock);
    return count;
}

void audit_begin(GDBusMethodInvocation *invocation, const Caller *caller)
{
    const char *called = g_dbus_method_invocation_get_method_name(invocation);

    for (guint i = 0; audit_is_on() && i < G_N_ELEMENTS(methods); i++)
        if (g_str_equal(called, methods[i].method)) {
            add(invocation, caller, i);
            return;
        }
}
