/* SPDX-License-Identifier: MIT */
/* ListOperations, CancelOperation, and the signal Progress. */
#include "host-agent/daemon/methods/vgpu_call.h"
#include "lib/bus.h"

static GVariant *objects_of(const Operation *operation)
{
    GVariantBuilder objects;

    g_variant_builder_init(&objects, G_VARIANT_TYPE_STRING_ARRAY);
    for (guint i = 0; i < operation_objects(operation); i++)
        g_variant_builder_add(&objects, "s", operation_object(operation, i));
    return g_variant_builder_end(&objects);
}

static GVariant *dict_of(const Operation *operation)
{
    GVariantDict dict;

    g_variant_dict_init(&dict, NULL);
    g_variant_dict_insert(&dict, "Id", "t", operation_id(operation));
    g_variant_dict_insert(&dict, "Kind", "s", operation_kind(operation)->name);
    g_variant_dict_insert_value(&dict, "Objects", objects_of(operation));
    g_variant_dict_insert(&dict, "Caller", "s", operation_caller(operation));
    g_variant_dict_insert(&dict, "Begun", "x", operation_begun(operation));
    g_variant_dict_insert(&dict, "Step", "s", operation_step(operation));
    g_variant_dict_insert(&dict, "At", "u", operation_at(operation));
    g_variant_dict_insert(&dict, "Total", "u", operation_total(operation));
    g_variant_dict_insert(&dict, "Undoing", "b", operation_goes_back(operation));
    return g_variant_dict_end(&dict);
}

static void list(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Vgpus *vgpus = data;
    g_autoptr(GPtrArray) operations = operations_list(vgpus->life->operations);
    GVariantBuilder list;

    (void)caller;
    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < operations->len; i++)
        g_variant_builder_add_value(&list, dict_of(g_ptr_array_index(operations, i)));
    vgpu_manager_complete_list_operations(host_manager(vgpus->host), invocation,
                                          g_variant_builder_end(&list));
}

gboolean operations_list_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                                void *data)
{
    (void)interface;
    authority_ask(invocation, ACTION_SEE, list, data);
    return TRUE;
}

static void cancel(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Vgpus *vgpus = data;
    GError *error = NULL;
    guint64 id;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(t)", &id);
    if (!operations_cancel(vgpus->life->operations, id, &error)) {
        g_dbus_method_invocation_take_error(invocation, error);
        return;
    }
    g_message("operation %" G_GUINT64_FORMAT " was cancelled by %s", id, caller->user);
    vgpu_manager_complete_cancel_operation(host_manager(vgpus->host), invocation);
}

/* The caller of an operation may cancel it. */
static void cancel_own(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Vgpus *vgpus = data;
    g_autoptr(GPtrArray) operations = operations_list(vgpus->life->operations);
    gboolean own = FALSE;
    guint64 id;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(t)", &id);
    for (guint i = 0; i < operations->len; i++) {
        const Operation *operation = g_ptr_array_index(operations, i);

        own = own || (operation_id(operation) == id &&
                      g_str_equal(operation_caller(operation), caller->user));
    }
    if (own)
        cancel(invocation, caller, data);
    else
        authority_refuse(invocation, caller, ACTION_ADMINISTER, NULL);
}

gboolean operation_cancel_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                                 guint64 id, void *data)
{
    (void)interface;
    (void)id;
    authority_ask_or(invocation, ACTION_ADMINISTER, cancel, cancel_own, data);
    return TRUE;
}

/* To the caller only: a tenant's requests are confidential. */
void vgpu_call_progress(const Operation *operation, void *data)
{
    const VgpuCall *call = data;

    g_dbus_connection_emit_signal(
        g_dbus_method_invocation_get_connection(call->invocation),
        g_dbus_method_invocation_get_sender(call->invocation), VGPU_MANAGER_PATH,
        VGPU_MANAGER_INTERFACE, "Progress",
        g_variant_new("(ts@assuub)", operation_id(operation), operation_kind(operation)->name,
                      objects_of(operation), operation_step(operation), operation_at(operation),
                      operation_total(operation), operation_goes_back(operation)),
        NULL);
}
