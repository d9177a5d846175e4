/* SPDX-License-Identifier: MIT */
/* CreateSlices: whether, where, and how. */
#include "lib/bus.h"
#include "lib/vgpu.h"
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/daemon/host/call.h"
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
static void forget_made(const Lifecycle *life, const Slice *slice)
{
    const char *parent = mdevctl_parent(slice->gpu);
    g_autoptr(Definition) definition = definition_read(host_root(life->host), parent, slice->uuid);
    g_autoptr(GError) error = NULL;

    if (is_there(life, slice->uuid) || definition)
        g_warning("vGPU %s of a request that failed could not be removed; remove it with \"vgpuctl "
                  "slice remove %s\"",
                  slice->uuid, slice->uuid);
    else if (!slices_forget(life->slices, slice->uuid, &error))
        g_warning("%s", error->message);
}

static void undo_reserve(Operation *operation, guint item)
{
    const Lifecycle *life = operation_world(operation);

    (void)item;
    for (guint i = 0; i < operation_objects(operation); i++) {
        const Slice *slice = slices_find(life->slices, operation_object(operation, i));
        g_autoptr(Slice) copy = slice ? slice_copy(slice) : NULL;

        if (copy)
            forget_made(life, copy);
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
    const Lifecycle *life = operation_world(operation);
    const char *uuid = operation_object(operation, item);

    if (!slices_find(life->slices, uuid) || is_there(life, uuid))
        operation_step_done(operation, NULL);
    else
        removal_undefine(operation, uuid);
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
static void plan_creation(Operation *operation)
{
    const Creation *creation = operation_kept(operation);

    operation_add_step(operation, &reserve, 0);
    for (guint i = 0; i < operation_objects(operation); i++) {
        if (creation && !slice_is_vgpu(slice_of(operation, i)))
            continue;
        if (!creation || slice_of(operation, i)->defined)
            operation_add_step(operation, &define, i);
        operation_add_step(operation, &start, i);
    }
}

/* After a crash: their room stays reserved until they are gone. */
static void creation_accepted(Operation *operation)
{
    const Lifecycle *life = operation_world(operation);

    if (operation_is_replayed(operation))
        for (guint i = 0; i < operation_objects(operation); i++)
            slices_set_reserved(life->slices, operation_object(operation, i));
}

static void tell_slice(Host *host, const Slice *slice, const char *user)
{
    host_event(host, "slice-created", slice->gpu, slice->uuid,
               "slice %s of GPU %s was made for %s, door %s, by %s", slice->uuid, slice->gpu,
               *slice->owner ? slice->owner : "containers", slice_transport_name(slice->transport),
               user);
}

static void creation_ended(Operation *operation, const GError *error)
{
    const Lifecycle *life = operation_world(operation);

    for (guint i = 0; i < operation_objects(operation); i++) {
        const char *uuid = operation_object(operation, i);
        const Slice *slice = slices_find(life->slices, uuid);

        if (slice && !error && slice_is_vgpu(slice))
            host_event(life->host, "vgpu-created", slice->gpu, uuid,
                       "vGPU %s of type %s was made on GPU %s", uuid, slice->type, slice->gpu);
        else if (slice && !error)
            tell_slice(life->host, slice, operation_caller(operation));
        slices_settle(life->slices, uuid);
    }
}

/*
 * @list: of Slice, vGPUs (reserved) and slices that are none, taken. @window: bytes; 0: the types'.
 * @request: its kind, objects, details and kept data are filled in here.
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
                                     .replay = OPERATION_UNDO_ALL,
                                     .step_time = 60,
                                     .plan = plan_creation,
                                     .accepted = creation_accepted,
                                     .ended = creation_ended};

static void answer_created(const GError *error, void *data)
{
    VgpuCall *call = data;
    Vgpus *vgpus = call->vgpus;

    if (error)
        call_fail(call->invocation, error);
    else
        call_answer_value(call->invocation,
                          list_slices_called(vgpus->host, vgpus->slices, call->uuids));
    vgpu_call_free(call);
}

/**
 * Making - what a call asks for
 * @requests: of Request
 * @made: of Slice, placed and not stored yet
 * @all: of const Slice, in the order of the requests: those of @made, and those that exist already
 */
typedef struct {
    GPtrArray *requests;
    GPtrArray *made;
    GPtrArray *all;
} Making;

static void making_free(Making *making)
{
    g_ptr_array_unref(making->requests);
    g_ptr_array_unref(making->made);
    g_ptr_array_unref(making->all);
    g_free(making);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Making, making_free)

static Making *making_new(void)
{
    Making *making = g_new0(Making, 1);

    making->requests = g_ptr_array_new_with_free_func((GDestroyNotify)request_free);
    making->made = g_ptr_array_new_with_free_func((GDestroyNotify)slice_free);
    making->all = g_ptr_array_new();
    return making;
}

#define MOST_REQUESTS 64

static gboolean read_call(GDBusMethodInvocation *invocation, Making *making, GError **error)
{
    g_autoptr(GVariant) dicts = g_variant_get_child_value(call_parameters(invocation), 0);
    gsize count = g_variant_n_children(dicts);

    if (!count || count > MOST_REQUESTS) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "1 to %d slices can be made at once, not %" G_GSIZE_FORMAT, MOST_REQUESTS,
                    count);
        return FALSE;
    }
    for (gsize i = 0; i < count; i++) {
        g_autoptr(GVariant) dict = g_variant_get_child_value(dicts, i);
        Request *request = request_parse(dict, error);

        if (!request)
            return FALSE;
        g_ptr_array_add(making->requests, request);
    }
    return requests_check_owner(making->requests, error);
}

/* The slice that an earlier call has made for the same owner and part. FALSE with @error. */
static gboolean find_made(const Vgpus *vgpus, const Request *request, const Slice **found,
                          GError **error)
{
    const char *doing;

    *found = *request->wanted->owner
                 ? slices_find_owned(vgpus->slices, request->wanted->owner, request->wanted->part)
                 : NULL;
    if (!*found)
        return TRUE;
    doing = operations_doing(vgpus->life->operations, (*found)->uuid);
    if (doing)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "slice %s of %s is just %s; try again when that is done", request->wanted->part,
                    request->wanted->owner, doing);
    else if (!g_str_equal((*found)->asked, request->wanted->asked))
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_EXISTS,
                    "%s has a slice %s already (%s), which was requested with other values",
                    request->wanted->owner, request->wanted->part, (*found)->uuid);
    else
        return TRUE;
    return FALSE;
}

static gboolean check_member(const Vgpus *vgpus, const char *member, const GPtrArray *slices,
                             GError **error)
{
    for (guint i = 0; i < slices->len; i++)
        if (!vgpu_call_is_entitled(vgpus, member, g_ptr_array_index(slices, i), NULL, error))
            return FALSE;
    return TRUE;
}

/* @member: the caller; NULL: an administrator. */
static gboolean place_one(const Vgpus *vgpus, const Request *request, const char *member,
                          Making *making, GError **error)
{
    const Slice *found;
    g_autoptr(GPtrArray) placed = NULL;

    /* First: others' owners are nothing that a member may ask about. */
    if (member && *request->wanted->owner) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED,
                    "only an administrator can make a slice with an Owner");
        return FALSE;
    }
    if (!find_made(vgpus, request, &found, error))
        return FALSE;
    if (found) {
        g_ptr_array_add(making->all, (void *)found);
        return TRUE;
    }
    placed = placing_find(vgpus->host, vgpus->offers, vgpus->slices, vgpus->tenants, request,
                          making->made, error);
    if (!placed || (member && !check_member(vgpus, member, placed, error)))
        return FALSE;
    for (guint i = 0; i < placed->len; i++) {
        Slice *slice = slice_copy(g_ptr_array_index(placed, i));

        g_ptr_array_add(making->made, slice);
        g_ptr_array_add(making->all, slice);
    }
    return TRUE;
}

static gboolean place_all(const Vgpus *vgpus, const char *member, Making *making, GError **error)
{
    for (guint i = 0; i < making->requests->len; i++)
        if (!place_one(vgpus, g_ptr_array_index(making->requests, i), member, making, error))
            return FALSE;
    return TRUE;
}

/* Those that are no vGPUs take one step: they exist as soon as they are stored. */
static void store_slices(const Vgpus *vgpus, GDBusMethodInvocation *invocation,
                         const Caller *caller, const Making *making)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) list = NULL;

    if (making->made->len && !slices_put_all(vgpus->slices, making->made, &error)) {
        call_fail(invocation, error);
        return;
    }
    for (guint i = 0; i < making->made->len; i++)
        tell_slice(vgpus->host, g_ptr_array_index(making->made, i), caller->user);
    call_answer_value(invocation, list_slices(making->all));
}

/* Of a new vGPU; 0: its type's, if a VM has room for that. */
static guint64 window_of(const Vgpus *vgpus, const Request *request, const Slice *slice)
{
    const Gpu *gpu = host_gpu(vgpus->host, slice->gpu);
    guint64 most = request->window_most;
    Offer offer;

    if (request->window || !most || !gpu || !offers_find(vgpus->offers, gpu, slice->type, &offer))
        return request->window;
    return offer.desc->window_bytes > most ? most : 0;
}

static void begin_creation(Vgpus *vgpus, GDBusMethodInvocation *invocation, const Caller *caller,
                           Making *making)
{
    const Request *request = g_ptr_array_index(making->requests, 0);
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    g_auto(GStrv) uuids = NULL;
    VgpuCall *call;
    OperationRequest operation = {.done = answer_created};
    GError *error = NULL;

    for (guint i = 0; i < making->all->len; i++)
        g_strv_builder_add(builder, ((const Slice *)making->all->pdata[i])->uuid);
    uuids = g_strv_builder_end(builder);
    call = vgpu_call_new(vgpus, invocation, uuids);
    g_message("%u vGPUs of type %s were requested by %s", making->made->len,
              ((const Slice *)making->made->pdata[0])->type, caller->user);
    vgpu_call_ask(call, caller, &operation);
    if (!creation_start(vgpus->life, g_ptr_array_ref(making->made),
                        window_of(vgpus, request, making->made->pdata[0]), &operation, &error))
        vgpu_call_refuse(call, error);
}

static gboolean has_vgpu(const GPtrArray *slices)
{
    for (guint i = 0; i < slices->len; i++)
        if (slice_is_vgpu(g_ptr_array_index(slices, i)))
            return TRUE;
    return FALSE;
}

static void note_made(GDBusMethodInvocation *invocation, const GPtrArray *slices)
{
    for (guint i = 0; i < slices->len; i++)
        call_creates(invocation, ((const Slice *)slices->pdata[i])->uuid);
}

static void create_slices(GDBusMethodInvocation *invocation, const Caller *caller, Vgpus *vgpus,
                          const char *member)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Making) making = making_new();
    const Request *first;

    host_catch_up(vgpus->host);
    if (!read_call(invocation, making, &error) || !place_all(vgpus, member, making, &error)) {
        call_fail(invocation, error);
        return;
    }
    first = g_ptr_array_index(making->requests, 0);
    if (first->dry_run) {
        call_answer_value(invocation, list_slices(making->all));
        return;
    }
    note_made(invocation, making->made);
    if (has_vgpu(making->made))
        begin_creation(vgpus, invocation, caller, making);
    else
        store_slices(vgpus, invocation, caller, making);
}

void vgpu_create(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    create_slices(invocation, caller, data, NULL);
}

void vgpu_create_own(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    create_slices(invocation, caller, data, caller->user);
}
