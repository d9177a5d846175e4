/* SPDX-License-Identifier: MIT */
/* CreateVgpus, CreateSlice: whether, where, and how. */
#include "lib/vgpu.h"
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/daemon/methods/lists.h"
#include "host-agent/daemon/slices/mdevctl.h"
#include "host-agent/daemon/slices/placing.h"

/**
 * Creation - the slices to make; lost after a crash, which is undone
 * @slices: of Slice
 */
typedef struct {
    GPtrArray *slices;
    guint64 window;
} Creation;

static void creation_free(void *data)
{
    Creation *creation = data;

    g_ptr_array_unref(creation->slices);
    g_free(creation);
}

static const Slice *slice_of(const Operation *operation, guint item)
{
    const Creation *creation = operation_kept(operation);

    return g_ptr_array_index(creation->slices, item);
}

static gboolean is_there(const Lifecycle *life, const char *uuid)
{
    g_autoptr(Vgpu) vgpu = vgpu_read(host_root(life->host), uuid);

    return vgpu != NULL;
}

/*
 * All of them are in the ledger before the first is made, so that no other request gets their room.
 */
static void run_reserve(Operation *operation, guint item)
{
    const Lifecycle *life = operation_world(operation);
    const Creation *creation = operation_kept(operation);
    GError *error = NULL;

    (void)item;
    slices_put_all(life->slices, creation->slices, &error);
    operation_step_done(operation, error);
}

/* If it could not be removed again, it is a normal vGPU. */
static void forget(const Lifecycle *life, const Slice *slice)
{
    const char *parent = mdevctl_parent(slice->gpu);
    g_autoptr(Definition) definition = definition_read(host_root(life->host), parent, slice->uuid);

    if (is_there(life, slice->uuid) || definition)
        g_warning("vGPU %s of a request that failed could not be removed; remove it with \"vgpuctl "
                  "vgpu remove %s\"",
                  slice->uuid, slice->uuid);
    else
        slices_forget(life->slices, slice->uuid);
}

static void undo_reserve(Operation *operation, guint item)
{
    const Lifecycle *life = operation_world(operation);

    (void)item;
    for (guint i = 0; i < operation_objects(operation); i++) {
        const Slice *slice = slices_find(life->slices, operation_object(operation, i));
        g_autoptr(Slice) copy = slice ? slice_copy(slice) : NULL;

        if (copy)
            forget(life, copy);
    }
    operation_step_done(operation, NULL);
}

static void run_define(Operation *operation, guint item)
{
    const Creation *creation = operation_kept(operation);
    const Slice *slice = slice_of(operation, item);
    g_autofree char *json = mdevctl_json(&(MdevctlSpec){slice, creation->window});
    const char *words[] = {
        "define",     "--uuid",     slice->uuid, "--parent", mdevctl_parent(slice->gpu),
        "--jsonfile", "/dev/stdin", NULL};

    mdevctl_run(words, json, operation_cancellable(operation), operation_step_ended, operation);
}

/* The definition of a vGPU that could not be stopped stays, too. */
static void undo_define(Operation *operation, guint item)
{
    if (is_there(operation_world(operation), operation_object(operation, item)))
        operation_step_done(operation, NULL);
    else
        removal_undefine(operation, operation_object(operation, item));
}

static void run_start(Operation *operation, guint item)
{
    const Creation *creation = operation_kept(operation);
    const Slice *slice = slice_of(operation, item);
    g_autofree char *json =
        slice->defined ? NULL : mdevctl_json(&(MdevctlSpec){slice, creation->window});
    const char *words[] = {"start",
                           "--uuid",
                           slice->uuid,
                           "--parent",
                           mdevctl_parent(slice->gpu),
                           json ? "--jsonfile" : NULL,
                           "/dev/stdin",
                           NULL};

    mdevctl_run(words, json, operation_cancellable(operation), operation_step_ended, operation);
}

/* Only one of ours: after a crash the UUID may not even be in the ledger. */
static void undo_start(Operation *operation, guint item)
{
    const Lifecycle *life = operation_world(operation);
    const char *uuid = operation_object(operation, item);

    if (slices_find(life->slices, uuid) && is_there(life, uuid))
        removal_stop(operation, uuid);
    else
        operation_step_done(operation, NULL);
}

static const OperationStep reserve = {"reserve", run_reserve, undo_reserve, FALSE};
static const OperationStep define = {"define", run_define, undo_define, FALSE};
static const OperationStep start = {"start", run_start, undo_start, FALSE};

/* After a crash the rollback checks what exists, so it has a step for every possible part. */
static void plan(Operation *operation)
{
    const Creation *creation = operation_kept(operation);

    operation_add_step(operation, &reserve, 0);
    for (guint i = 0; i < operation_objects(operation); i++) {
        if (!creation || slice_of(operation, i)->defined)
            operation_add_step(operation, &define, i);
        operation_add_step(operation, &start, i);
    }
}

/* After a crash: their room stays reserved until they are gone. */
static void accepted(Operation *operation)
{
    const Lifecycle *life = operation_world(operation);

    if (operation_is_replayed(operation))
        for (guint i = 0; i < operation_objects(operation); i++)
            slices_set_reserved(life->slices, operation_object(operation, i));
}

static void ended(Operation *operation, const GError *error)
{
    const Lifecycle *life = operation_world(operation);

    for (guint i = 0; i < operation_objects(operation); i++) {
        const char *uuid = operation_object(operation, i);
        const Slice *slice = slices_find(life->slices, uuid);

        if (slice && !error)
            host_event(life->host, "vgpu-created", slice->gpu, uuid,
                       "vGPU %s of type %s was made on GPU %s", uuid, slice->type, slice->gpu);
        slices_settle(life->slices, uuid);
    }
}

/*
 * @list: of Slice, all vGPUs and reserved, taken. @window: bytes; 0: the types'. @request: its
 * kind, objects, details and kept data are filled in here.
 */
static gboolean creation_start(const Lifecycle *life, GPtrArray *list, guint64 window,
                               OperationRequest *request, GError **error)
{
    g_autoptr(GPtrArray) uuids = g_ptr_array_new();
    Creation *creation = g_new0(Creation, 1);

    for (guint i = 0; i < list->len; i++)
        g_ptr_array_add(uuids, ((Slice *)g_ptr_array_index(list, i))->uuid);
    g_ptr_array_add(uuids, NULL);
    creation->slices = list;
    creation->window = window;
    request->kind = &creation_kind;
    request->objects = (const char *const *)uuids->pdata;
    request->kept = creation;
    request->free_kept = creation_free;
    return operations_start(life->operations, request, error);
}

const OperationKind creation_kind = {.name = "create",
                                     .doing = "being made",
                                     .what = "the creation",
                                     .replay = OPERATION_UNDO,
                                     .step_time = 60,
                                     .plan = plan,
                                     .accepted = accepted,
                                     .ended = ended};

static gboolean is_for_slice(GDBusMethodInvocation *invocation)
{
    return g_str_equal(g_dbus_method_invocation_get_method_name(invocation), "CreateSlice");
}

/* @list: floating, of vGPUs or of one slice. */
static void answer(const Vgpus *vgpus, GDBusMethodInvocation *invocation, GVariant *list)
{
    g_autoptr(GVariant) made = g_variant_ref_sink(list);
    g_autoptr(GVariant) first = NULL;

    if (!is_for_slice(invocation)) {
        vgpu_manager_complete_create_vgpus(host_manager(vgpus->host), invocation, made);
        return;
    }
    first = g_variant_get_child_value(made, 0);
    vgpu_manager_complete_create_slice(host_manager(vgpus->host), invocation, first);
}

static void created(const GError *error, void *data)
{
    VgpuCall *call = data;
    Vgpus *vgpus = call->vgpus;

    if (error)
        g_dbus_method_invocation_return_gerror(call->invocation, error);
    else
        answer(vgpus, call->invocation,
               list_vgpus_called(host_counters(vgpus->host), vgpus->slices, call->uuids));
    vgpu_call_free(call);
}

/* Nothing in @slices exceeds what a member of a tenant may request. */
static gboolean are_entitled(const Vgpus *vgpus, const GPtrArray *slices, GError **error)
{
    for (guint i = 0; i < slices->len; i++) {
        if (!vgpu_call_is_entitled(vgpus, g_ptr_array_index(slices, i), NULL, error))
            return FALSE;
    }
    return TRUE;
}

/* The slices, on their GPUs. */
static GPtrArray *place(Vgpus *vgpus, const Request *request, gboolean administrator,
                        GError **error)
{
    g_autoptr(GPtrArray) slices =
        placing_find(vgpus->host, vgpus->offers, vgpus->slices, vgpus->tenants, request, error);

    if (slices && !administrator && !are_entitled(vgpus, slices, error))
        return NULL;
    return g_steal_pointer(&slices);
}

/* One that is no vGPU takes one step: it exists as soon as it is stored. */
static void store_slice(Vgpus *vgpus, GDBusMethodInvocation *invocation, const Caller *caller,
                        const GPtrArray *slices)
{
    const Slice *slice = g_ptr_array_index(slices, 0);
    g_autoptr(GError) error = NULL;

    if (!slices_put_all(vgpus->slices, slices, &error)) {
        g_dbus_method_invocation_return_gerror(invocation, error);
        return;
    }
    host_event(vgpus->host, "slice-created", slice->gpu, slice->uuid,
               "slice %s of GPU %s was made for containers, door %s, by %s", slice->uuid,
               slice->gpu, slice_transport_name(slice->transport), caller->user);
    answer(vgpus, invocation, list_slices(slices));
}

/* @slices: taken. */
static void begin(Vgpus *vgpus, GDBusMethodInvocation *invocation, const Caller *caller,
                  const Request *request, GPtrArray *slices)
{
    VgpuCall *call = vgpu_call_new(vgpus, invocation, request->uuids);
    OperationRequest operation = {.done = created};
    GError *error = NULL;

    g_message("%u vGPUs of type %s were requested by %s", request->count, request->type,
              caller->user);
    vgpu_call_ask(call, caller, &operation);
    if (!creation_start(vgpus->life, slices, request->window, &operation, &error))
        vgpu_call_refuse(call, error);
}

static void create(GDBusMethodInvocation *invocation, const Caller *caller, Vgpus *vgpus,
                   gboolean administrator)
{
    g_autoptr(GVariant) dict = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(Request) request = NULL;
    g_autoptr(GPtrArray) slices = NULL;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(@a{sv})", &dict);
    request =
        is_for_slice(invocation) ? request_parse_slice(dict, &error) : request_parse(dict, &error);
    slices = request ? place(vgpus, request, administrator, &error) : NULL;
    if (!slices)
        g_dbus_method_invocation_return_gerror(invocation, error);
    else if (request->dry_run)
        answer(vgpus, invocation, list_slices(slices));
    else if (slice_is_vgpu(g_ptr_array_index(slices, 0)))
        begin(vgpus, invocation, caller, request, g_steal_pointer(&slices));
    else
        store_slice(vgpus, invocation, caller, slices);
}

void vgpu_create(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    create(invocation, caller, data, TRUE);
}

void vgpu_create_own(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    create(invocation, caller, data, FALSE);
}
