/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/methods/vgpu_call.h"

#include "lib/bus.h"
#include "host-agent/daemon/host/call.h"
#include "host-agent/daemon/methods/lists.h"
#include "host-agent/daemon/methods/old_names.h"
#include "host-agent/daemon/slices/placing.h"
#include "host-agent/model/placement.h"
#include "host-agent/model/request.h"

/**
 * Method - one of the manager's for which the tenant counts, too
 * @signal: of the manager's interface, when it is called
 * @administrator: if the caller may administer
 * @member: if the vGPU, or the request, is of a tenant of the caller's
 * @list: in place of these, for a list of what the caller may see
 */
typedef struct {
    const char *name;
    const char *signal;
    AuthorizedFunc *administrator;
    AuthorizedFunc *member;
    ListFunc *list;
} Method;

/**
 * Asked - the call to resume when polkit has answered
 */
typedef struct {
    Vgpus *vgpus;
    const Method *method;
} Asked;

VgpuCall *vgpu_call_new(Vgpus *vgpus, GDBusMethodInvocation *invocation, const GStrv uuids)
{
    VgpuCall *call = g_new0(VgpuCall, 1);

    call->vgpus = vgpus;
    call->invocation = invocation;
    call->uuids = g_strdupv(uuids);
    return call;
}

void vgpu_call_free(VgpuCall *call)
{
    g_strfreev(call->uuids);
    g_free(call);
}

static GVariant *objects_of(const Operation *operation)
{
    GVariantBuilder objects;

    g_variant_builder_init(&objects, G_VARIANT_TYPE_STRING_ARRAY);
    for (guint i = 0; i < operation_objects(operation); i++)
        g_variant_builder_add(&objects, "s", operation_object(operation, i));
    return g_variant_builder_end(&objects);
}

/*
 * Sends the caller each step, by the signal Progress. @call: a VgpuCall.
 * To the caller only: a tenant's requests are confidential.
 */
static void vgpu_call_progress(const Operation *operation, void *data)
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

void vgpu_call_ask(VgpuCall *call, const Caller *caller, OperationRequest *request)
{
    request->caller = caller->user;
    request->progress = vgpu_call_progress;
    request->data = call;
}

void vgpu_call_ended(const GError *error, void *data)
{
    VgpuCall *call = data;

    if (error)
        call_fail(call->invocation, error);
    else
        call_answer(call->invocation, NULL);
    vgpu_call_free(call);
}

void vgpu_call_refuse(VgpuCall *call, GError *error)
{
    call_take_error(call->invocation, error);
    vgpu_call_free(call);
}

void vgpu_call_begin(Vgpus *vgpus, GDBusMethodInvocation *invocation, const Caller *caller,
                     const char *uuid, const OperationKind *kind, const char *done)
{
    VgpuCall *call = vgpu_call_new(vgpus, invocation, (char *[]){(char *)uuid, NULL});
    OperationRequest request = {
        .kind = kind, .objects = (const char *[]){call->uuids[0], NULL}, .done = vgpu_call_ended};
    GError *error = NULL;

    g_message("vGPU %s is %s by %s", uuid, done, caller->user);
    vgpu_call_ask(call, caller, &request);
    if (!operations_start(vgpus->life->operations, &request, &error))
        vgpu_call_refuse(call, error);
}

/*
 * What a call asks to make or to change: its first argument, or the only one of a list there. NULL:
 * it is a name, or there are several.
 */
static GVariant *request_of(GDBusMethodInvocation *invocation)
{
    g_autoptr(GVariant) first = g_variant_get_child_value(call_parameters(invocation), 0);

    if (g_variant_is_of_type(first, G_VARIANT_TYPE_VARDICT))
        return g_steal_pointer(&first);
    if (g_variant_is_of_type(first, G_VARIANT_TYPE("aa{sv}")) && g_variant_n_children(first) == 1)
        return g_variant_get_child_value(first, 0);
    return NULL;
}

/* The tenant of a call: of the request, or of the existing slice. */
static char *tenant_of(const Vgpus *vgpus, GDBusMethodInvocation *invocation, const char *user)
{
    g_autoptr(GVariant) first = g_variant_get_child_value(call_parameters(invocation), 0);
    g_autoptr(GVariant) request = request_of(invocation);
    const Slice *slice;
    char *tenant = NULL;

    if (request)
        g_variant_lookup(request, "Tenant", "s", &tenant);
    if (request || !g_variant_is_of_type(first, G_VARIANT_TYPE_STRING))
        return tenant;
    slice = tenants_find_slice(vgpus->tenants, g_variant_get_string(first, NULL), user);
    return slice ? g_strdup(slice->tenant) : NULL;
}

/* Before anything is read of a request: the tenant that is asked for is then the one that pays. */
static gboolean check_request(GDBusMethodInvocation *invocation, GError **error)
{
    g_autoptr(GVariant) request = request_of(invocation);

    return !request || dict_check_unique(request, error);
}

static gboolean is_own(const Vgpus *vgpus, GDBusMethodInvocation *invocation, const char *user)
{
    g_autofree char *tenant = tenant_of(vgpus, invocation, user);

    return tenant && tenants_has_user(vgpus->tenants, tenant, user);
}

static void is_administrator(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Asked *asked = data;

    asked->method->administrator(invocation, caller, asked->vgpus);
}

/* Again, because polkit's answer takes time, in which another's slice may have got that name. */
static void is_member(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Asked *asked = data;

    if (is_own(asked->vgpus, invocation, caller->user))
        asked->method->member(invocation, caller, asked->vgpus);
    else
        authority_refuse(invocation, caller, ACTION_ADMINISTER,
                         "what it names was changed meanwhile, and is not its own tenant's now");
}

static void is_no_administrator(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Asked *asked = data;

    if (is_own(asked->vgpus, invocation, caller->user))
        authority_ask(invocation, ACTION_USE_OWN_TENANT, is_member, data);
    else
        authority_ask(invocation, ACTION_ADMINISTER, is_administrator, data);
}

static void list_all(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Asked *asked = data;

    (void)caller;
    asked->method->list(asked->vgpus, invocation, NULL);
}

static void list_own(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Asked *asked = data;

    if (tenants_any_has_user(asked->vgpus->tenants, caller->user))
        asked->method->list(asked->vgpus, invocation, caller->user);
    else
        authority_ask(invocation, ACTION_SEE, list_all, data);
}

/* Goes on with the function for the caller's right, or answers with the refusal. */
static void authorize_method(Vgpus *vgpus, const Method *method, GDBusMethodInvocation *invocation)
{
    g_autoptr(GError) error = NULL;
    Asked *asked;

    if (!method->list && !check_request(invocation, &error)) {
        call_fail(invocation, error);
        return;
    }
    asked = g_new0(Asked, 1);
    asked->vgpus = vgpus;
    asked->method = method;
    /* It is needed until the call is answered. */
    g_object_set_data_full(G_OBJECT(invocation), "asked", asked, g_free);
    if (method->list)
        authority_ask_or(invocation, ACTION_SEE, list_all, list_own, asked);
    else
        authority_ask_or(invocation, ACTION_ADMINISTER, is_administrator, is_no_administrator,
                         asked);
}

/* @slice, if no operation works on it. */
static const Slice *if_free(const Vgpus *vgpus, const Slice *slice, GError **error)
{
    const char *doing = operations_doing(vgpus->life->operations, slice->uuid);

    if (!doing)
        return slice;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "%s %s is just %s; try again when that is done",
                slice_is_vgpu(slice) ? "vGPU" : "slice", slice->uuid, doing);
    return NULL;
}

static void set_unknown(const Vgpus *vgpus, const char *what, const char *name,
                        const Caller *caller, GError **error)
{
    g_autofree char *called = tenants_slices_called(vgpus->tenants, name, caller->user);

    g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND,
                "there is no %s %s%s; \"vgpuctl slice list\" lists the existing ones", what, name,
                called);
}

const Slice *vgpu_call_slice(const Vgpus *vgpus, const char *name, const Caller *caller,
                             GError **error)
{
    const Slice *slice = tenants_find_slice(vgpus->tenants, name, caller->user);

    if (slice)
        return if_free(vgpus, slice, error);
    set_unknown(vgpus, "slice", name, caller, error);
    return NULL;
}

const Slice *vgpu_call_container_slice(const Vgpus *vgpus, const char *name, const Caller *caller,
                                       GError **error)
{
    const Slice *slice = tenants_find_slice(vgpus->tenants, name, caller->user);

    if (slice && slice_is_for_container(slice))
        return if_free(vgpus, slice, error);
    set_unknown(vgpus, "slice", name, caller, error);
    return NULL;
}

const Slice *vgpu_call_vgpu(const Vgpus *vgpus, const char *name, const Caller *caller,
                            GError **error)
{
    const Slice *slice = tenants_find_slice(vgpus->tenants, name, caller->user);

    if (slice && slice_is_vgpu(slice))
        return if_free(vgpus, slice, error);
    set_unknown(vgpus, "vGPU", name, caller, error);
    return NULL;
}

/* Whichever tenant the call was authorized for: the user may have left it meanwhile. */
static gboolean check_tenant(const Vgpus *vgpus, const Slice *wanted, const char *user,
                             GError **error)
{
    if (tenants_has_user(vgpus->tenants, wanted->tenant, user))
        return TRUE;
    g_set_error(
        error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED,
        "%s is no user of tenant \"%s\"; an administrator can make it one (\"vgpuctl tenant "
        "set --user\")",
        user, wanted->tenant);
    return FALSE;
}

gboolean vgpu_call_is_entitled(const Vgpus *vgpus, const char *user, const Slice *wanted,
                               const Slice *before, GError **error)
{
    const Gpu *gpu = host_gpu(vgpus->host, wanted->gpu);
    struct vgpu_type_desc desc;
    Offer offer;
    gboolean known =
        gpu && (*wanted->type ? offers_find(vgpus->offers, gpu, wanted->type, &offer)
                              : offers_of_size(vgpus->offers, gpu, wanted->vram, &desc, &offer));

    return entitlement_check(wanted, before, known ? &offer : NULL, error) &&
           check_tenant(vgpus, wanted, user, error);
}

/* The manager's methods for slices. */

/* mdevctl may have stopped it a moment ago, and udev's event be on its way. */
static void look_again(const Vgpus *vgpus, const char *asked)
{
    g_autofree char *uuid = g_ascii_strdown(asked, -1);

    if (slices_find(vgpus->slices, uuid))
        slices_update(vgpus->slices, uuid);
}

static void check_definition(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Vgpus *vgpus = data;
    g_autoptr(GVariant) options = NULL;
    g_autoptr(GError) error = NULL;
    g_auto(DefinitionCheck) asked = {0};

    (void)caller;
    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s&s&s@a{sv})",
                  &asked.uuid, &asked.parent, &asked.type, &options);
    host_catch_up(vgpus->host);
    look_again(vgpus, asked.uuid);
    if (definition_check_parse(options, &asked, &error) &&
        definition_check(vgpus->host, vgpus->offers, vgpus->slices, vgpus->tenants, &asked, &error))
        call_answer(invocation, NULL);
    else
        call_fail(invocation, error);
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

static void list_operations(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Vgpus *vgpus = data;
    g_autoptr(GPtrArray) operations = operations_list(vgpus->life->operations);
    GVariantBuilder list_operations;

    (void)caller;
    g_variant_builder_init(&list_operations, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < operations->len; i++)
        g_variant_builder_add_value(&list_operations, dict_of(g_ptr_array_index(operations, i)));
    call_answer_value(invocation, g_variant_builder_end(&list_operations));
}

static void cancel_operation(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Vgpus *vgpus = data;
    GError *error = NULL;
    guint64 id;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(t)", &id);
    if (!operations_cancel(vgpus->life->operations, id, &error)) {
        call_take_error(invocation, error);
        return;
    }
    g_message("operation %" G_GUINT64_FORMAT " was cancelled by %s", id, caller->user);
    call_answer(invocation, NULL);
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
        cancel_operation(invocation, caller, data);
    else
        authority_refuse(invocation, caller, ACTION_ADMINISTER, NULL);
}

void lifecycle_settle(const Lifecycle *life, const char *uuid, const GError *error,
                      const char *done)
{
    const Slice *slice;

    slices_settle(life->slices, uuid);
    slice = slices_find(life->slices, uuid);
    if (!error && slice)
        host_event(life->host, slice_is_vgpu(slice) ? "vgpu-changed" : "slice-changed", slice->gpu,
                   uuid, "%s %s was %s", slice_is_vgpu(slice) ? "vGPU" : "slice", uuid, done);
}

const OperationKind *const lifecycle_kinds[] = {&creation_kind,
                                                &startup_kind,
                                                &shutdown_kind,
                                                &alteration_kind,
                                                &removal_kind,
                                                &suspension_kind,
                                                &resumption_kind,
                                                &repeated_resumption_kind,
                                                NULL};

static const Method methods[] = {
    {"FindSlices", "handle-find-slices", NULL, NULL, slices_find_asked},
    {"ListTypes", "handle-list-types", NULL, NULL, type_list},
    {"CreateSlices", "handle-create-slices", vgpu_create, vgpu_create_own, NULL},
    {"SetSlice", "handle-set-slice", vgpu_set, vgpu_set_own, NULL},
    {"StartSlice", "handle-start-slice", vgpu_start, vgpu_start, NULL},
    {"StopSlice", "handle-stop-slice", vgpu_stop, vgpu_stop, NULL},
    {"RemoveSlice", "handle-remove-slice", vgpu_remove, vgpu_remove, NULL},
    {"SuspendSlice", "handle-suspend-slice", slice_suspend, slice_suspend, NULL},
    {"ResumeSlice", "handle-resume-slice", slice_resume, slice_resume, NULL},
    {"WarmSlice", "handle-warm-slice", slice_warm, slice_warm, NULL},
    {"RunSlice", "handle-run-slice", slice_run, slice_run_own, NULL},
    {"ClaimSlice", "handle-claim-slice", slice_claim, slice_claim_own, NULL},
    {"ReleaseSlice", "handle-release-slice", slice_release, slice_release_own, NULL},
};

/* Of all these signals, whose arguments the methods read from the invocation. */
static void handle_method(GClosure *closure, GValue *handled, guint count, const GValue *arguments,
                          void *hint, void *method)
{
    (void)count;
    (void)hint;
    authorize_method(closure->data, method, g_value_get_object(&arguments[1]));
    g_value_set_boolean(handled, TRUE);
}

/* The same of an old name. */
static void handle_old(GClosure *closure, GValue *handled, guint count, const GValue *arguments,
                       void *hint, void *data)
{
    GDBusMethodInvocation *invocation = g_value_get_object(&arguments[1]);
    const OldName *old = data;

    (void)count;
    (void)hint;
    old_name_translate(old, invocation);
    for (gsize i = 0; i < G_N_ELEMENTS(methods); i++)
        if (g_str_equal(methods[i].name, old->method))
            authorize_method(closure->data, &methods[i], invocation);
    g_value_set_boolean(handled, TRUE);
}

static void connect_method(Vgpus *vgpus, const char *signal, GClosureMarshal func, const void *data)
{
    GClosure *closure = g_closure_new_simple(sizeof(*closure), vgpus);

    g_closure_set_meta_marshal(closure, (void *)data, func);
    g_signal_connect_closure(host_manager(vgpus->host), signal, closure, FALSE);
}

Vgpus *vgpus_new(const Lifecycle *life, Offers *offers, const Tenants *tenants, Returns *returns)
{
    Vgpus *vgpus = g_new0(Vgpus, 1);
    VgpuManager *manager = host_manager(life->host);

    vgpus->host = life->host;
    vgpus->life = life;
    vgpus->offers = offers;
    vgpus->slices = life->slices;
    vgpus->tenants = tenants;
    vgpus->returns = returns;
    vgpus->claims = life->claims;
    vgpus->vms = vms_new(host_root(life->host));
    vgpus->freed = g_cancellable_new();
    vgpus->unreturned = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(methods); i++)
        connect_method(vgpus, methods[i].signal, handle_method, &methods[i]);
    for (const OldName *old = old_names; old->signal; old++)
        connect_method(vgpus, old->signal, handle_old, old);
    authority_answer(manager, "handle-check-definition", ACTION_SEE, check_definition, NULL, vgpus);
    authority_answer(manager, "handle-release-domain", ACTION_ADMINISTER, domain_release, NULL,
                     vgpus);
    authority_answer(manager, "handle-release-owner", ACTION_ADMINISTER, owner_release, NULL,
                     vgpus);
    authority_answer(manager, "handle-list-owners", ACTION_SEE, owner_list, NULL, vgpus);
    authority_answer(manager, "handle-list-operations", ACTION_SEE, list_operations, NULL, vgpus);
    authority_answer(manager, "handle-cancel-operation", ACTION_ADMINISTER, cancel_operation,
                     cancel_own, vgpus);
    return vgpus;
}

void vgpus_free(Vgpus *vgpus)
{
    g_signal_handlers_disconnect_by_data(host_manager(vgpus->host), vgpus);
    g_cancellable_cancel(vgpus->freed);
    g_object_unref(vgpus->freed);
    vms_unref(vgpus->vms);
    g_clear_handle_id(&vgpus->sweep, g_source_remove);
    g_hash_table_unref(vgpus->unreturned);
    g_free(vgpus);
}
