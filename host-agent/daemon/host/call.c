/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/host/call.h"

#include "lib/bus.h"
#include "host-agent/daemon/host/audit.h"

/* The methods that change something, and the kind of their first argument. */
static const struct {
    const char *method;
    AuditKind kind;
    gboolean creates;
} audited[] = {
    /* Slices. */
    {"CreateSlices", AUDIT_SLICE, TRUE},
    {"RunSlice", AUDIT_SLICE, TRUE},
    {"SetSlice", AUDIT_SLICE, FALSE},
    {"StartSlice", AUDIT_SLICE, FALSE},
    {"StopSlice", AUDIT_SLICE, FALSE},
    {"RemoveSlice", AUDIT_SLICE, FALSE},
    {"ClaimSlice", AUDIT_SLICE, FALSE},
    {"SuspendSlice", AUDIT_SLICE, FALSE},
    {"ResumeSlice", AUDIT_SLICE, FALSE},
    {"WarmSlice", AUDIT_SLICE, FALSE},
    /* All else. */
    {"SetTenant", AUDIT_TENANT, FALSE},
    {"RemoveTenant", AUDIT_TENANT, FALSE},
    {"SetMode", AUDIT_GPU, FALSE},
    {"Drain", AUDIT_GPU, FALSE},
    {"ClearHealth", AUDIT_GPU, FALSE},
    {"SetPool", AUDIT_GPU, FALSE},
    {"Reload", AUDIT_CONFIG, FALSE},
    {"ApplyConfig", AUDIT_CONFIG, FALSE},
};

/**
 * Entry - of the audit, while the call runs
 * @method: in audited
 * @before: the object's state
 * @created: UUIDs, of a method that creates
 */
typedef struct {
    guint method;
    char *user;
    guint32 uid;
    char *object;
    char *before;
    GPtrArray *created;
} Entry;

static void entry_free(void *data)
{
    Entry *entry = data;

    g_free(entry->user);
    g_free(entry->object);
    g_free(entry->before);
    g_ptr_array_unref(entry->created);
    g_free(entry);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Entry, entry_free)

/**
 * Translation - of a call by an old name; see call_translate()
 */
typedef struct {
    const char *method;
    GVariant *parameters;
    CallForm *form;
} Translation;

/* These belong to the invocation. */
#define ENTRY       "audit"
#define TRANSLATION "translation"

static void translation_free(void *data)
{
    Translation *translation = data;

    g_clear_pointer(&translation->parameters, g_variant_unref);
    g_free(translation);
}

void call_translate(GDBusMethodInvocation *invocation, const char *method, GVariant *parameters,
                    CallForm *form)
{
    Translation *translation = g_new0(Translation, 1);

    translation->method = method;
    translation->parameters = parameters ? g_variant_ref_sink(parameters) : NULL;
    translation->form = form;
    g_object_set_data_full(G_OBJECT(invocation), TRANSLATION, translation, translation_free);
}

static const Translation *translation_of(GDBusMethodInvocation *invocation)
{
    return g_object_get_data(G_OBJECT(invocation), TRANSLATION);
}

GVariant *call_parameters(GDBusMethodInvocation *invocation)
{
    const Translation *translation = translation_of(invocation);

    return translation && translation->parameters
               ? translation->parameters
               : g_dbus_method_invocation_get_parameters(invocation);
}

static const char *method_of(GDBusMethodInvocation *invocation)
{
    const Translation *translation = translation_of(invocation);

    return translation ? translation->method : g_dbus_method_invocation_get_method_name(invocation);
}

static char *object_of(GDBusMethodInvocation *invocation, AuditKind kind)
{
    GVariant *arguments = call_parameters(invocation);
    g_autoptr(GVariant) first = NULL;

    if (kind == AUDIT_GPU)
        return g_strdup(g_dbus_method_invocation_get_object_path(invocation));
    if (kind == AUDIT_CONFIG)
        return g_strdup("/etc/vgpu");
    first = g_variant_get_child_value(arguments, 0);
    return g_variant_is_of_type(first, G_VARIANT_TYPE_STRING) ? g_variant_dup_string(first, NULL)
                                                              : g_strdup("");
}

static Entry *entry_new(GDBusMethodInvocation *invocation, const Caller *caller, guint method)
{
    Entry *entry = g_new0(Entry, 1);

    entry->method = method;
    entry->user = g_strdup(caller->user);
    entry->uid = caller->uid;
    entry->object = object_of(invocation, audited[method].kind);
    entry->created = g_ptr_array_new_with_free_func(g_free);
    entry->before = audited[method].creates
                        ? g_strdup("")
                        : audit_state_and_name(audited[method].kind, &entry->object, entry->user);
    return entry;
}

void call_begin(GDBusMethodInvocation *invocation, const Caller *caller)
{
    const char *called = method_of(invocation);

    for (guint i = 0; audit_is_on() && i < G_N_ELEMENTS(audited); i++)
        if (g_str_equal(called, audited[i].method))
            g_object_set_data_full(G_OBJECT(invocation), ENTRY, entry_new(invocation, caller, i),
                                   entry_free);
}

void call_creates(GDBusMethodInvocation *invocation, const char *uuid)
{
    const Entry *entry = g_object_get_data(G_OBJECT(invocation), ENTRY);

    if (entry)
        g_ptr_array_add(entry->created, g_strdup(uuid));
}

static void write_entry(const Entry *entry, const char *object, const char *before,
                        const char *after, const GError *error)
{
    audit_write(&(AuditEntry){.who = entry->user,
                              .uid = &entry->uid,
                              .what = audited[entry->method].method,
                              .object = object,
                              .before = before,
                              .after = after,
                              .error = error});
}

static void write_created(const Entry *entry)
{
    for (guint i = 0; i < entry->created->len; i++) {
        const char *uuid = g_ptr_array_index(entry->created, i);
        g_autofree char *after = audit_state_of(AUDIT_SLICE, uuid);

        if (*after)
            write_entry(entry, uuid, "", after, NULL);
    }
}

/* Before the caller hears of it. */
static void write_change(GDBusMethodInvocation *invocation, const GError *error)
{
    g_autoptr(Entry) entry = g_object_steal_data(G_OBJECT(invocation), ENTRY);
    g_autofree char *after = NULL;
    AuditKind kind;

    if (!entry || !audit_is_on())
        return;
    if (audited[entry->method].creates) {
        if (!error)
            write_created(entry);
        return;
    }
    kind = audited[entry->method].kind;
    after = audit_state_and_name(kind, &entry->object, entry->user);
    if (kind == AUDIT_CONFIG ? !error : !g_str_equal(entry->before, after))
        write_entry(entry, entry->object, entry->before, after, error);
}

void call_answer(GDBusMethodInvocation *invocation, GVariant *answer)
{
    write_change(invocation, NULL);
    g_dbus_method_invocation_return_value(invocation, answer);
}

void call_answer_value(GDBusMethodInvocation *invocation, GVariant *value)
{
    const Translation *translation = translation_of(invocation);
    g_autoptr(GVariant) owned = g_variant_ref_sink(value);
    g_autoptr(GVariant) formed = translation && translation->form
                                     ? g_variant_take_ref(translation->form(owned))
                                     : g_variant_ref(owned);

    call_answer(invocation, g_variant_new_tuple(&formed, 1));
}

void call_fail(GDBusMethodInvocation *invocation, const GError *error)
{
    write_change(invocation, error);
    g_dbus_method_invocation_return_gerror(invocation, error);
}

void call_refuse(GDBusMethodInvocation *invocation, int code, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    call_take_error(invocation, g_error_new_valist(AGENT_ERROR, code, format, values));
    va_end(values);
}

const Gpu *call_gpu(GDBusMethodInvocation *invocation, const Host *host)
{
    const Gpu *gpu = host_gpu_at(host, g_dbus_method_invocation_get_object_path(invocation));

    if (!gpu)
        call_refuse(invocation, AGENT_ERROR_NOT_FOUND, "the GPU has just been removed");
    return gpu;
}

void call_take_error(GDBusMethodInvocation *invocation, GError *error)
{
    call_fail(invocation, error);
    g_error_free(error);
}
