/* SPDX-License-Identifier: MIT */
/* SetSlice: whether, and how. */
#include "lib/bus.h"
#include "lib/vgpu.h"
#include "lib/mdev.h"
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/daemon/host/call.h"
#include "host-agent/daemon/slices/mdevctl.h"
#include "host-agent/daemon/slices/placing.h"
#include "host-agent/model/placement.h"
#include "host-agent/model/slice_keys.h"

#define BEFORE "before"
#define WANTED "wanted"

/**
 * Alteration
 * @before: the slice as it was
 * @driver, @definition: has been changed
 */
typedef struct {
    Slice *before;
    Slice *wanted;
    gboolean driver;
    gboolean definition;
} Alteration;

static void alteration_free(void *data)
{
    Alteration *alteration = data;

    slice_free(alteration->before);
    slice_free(alteration->wanted);
    g_free(alteration);
}

/* The driver's present values, if it has the vGPU: after a crash these may be a mix. */
static Slice *as_it_is(const Lifecycle *life, const Slice *known)
{
    g_autoptr(Vgpu) vgpu = vgpu_read(host_root(life->host), known->uuid);
    Slice *slice = slice_copy(known);

    if (!slice_is_vgpu(known))
        return slice;
    slice->present = vgpu != NULL;
    if (vgpu)
        adopt_vgpu(slice, host_root(life->host), vgpu);
    return slice;
}

static gboolean write_driver(const Lifecycle *life, const Slice *from, const Slice *to,
                             GError **error)
{
    g_autofree char *device = mdev_path(to->uuid);
    g_autofree char *dir = g_build_filename(device, "vgpu", NULL);
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    g_autofree VgpuWrite *list = g_new(VgpuWrite, slice_keys_count);
    gsize count = 0;

    for (guint i = 0; i < slice_keys_count; i++) {
        const SliceKey *key = &slice_keys[i];
        char *before, *after;

        if (!key->attribute)
            continue;
        before = slice_key_text(key, from);
        after = slice_key_text(key, to);
        g_ptr_array_add(texts, before);
        g_ptr_array_add(texts, after);
        list[count++] = (VgpuWrite){key->attribute, before, after};
    }
    return vgpu_write(host_root(life->host), dir, list, count, error);
}

/* Values that others change meanwhile stay. */
static gboolean put_slice(const Lifecycle *life, const Slice *slice, GError **error)
{
    const Slice *known = slices_find(life->slices, slice->uuid);
    Slice *copy = slice_copy(slice);

    if (known) {
        copy->present = known->present;
        copy->defined = known->defined;
        copy->autostart = known->autostart;
        copy->suspended = known->suspended;
    }
    return slices_put(life->slices, copy, error);
}

static void run_store(Operation *operation, guint item)
{
    const Alteration *alteration = operation_kept(operation);
    GError *error = NULL;

    (void)item;
    put_slice(operation_world(operation), alteration->wanted, &error);
    operation_step_done(operation, error);
}

static void undo_store(Operation *operation, guint item)
{
    const Alteration *alteration = operation_kept(operation);
    GError *error = NULL;

    (void)item;
    put_slice(operation_world(operation), alteration->before, &error);
    operation_step_done(operation, error);
}

/* All of it, or nothing: after the driver's refusal the earlier values are restored already. */
static void run_driver(Operation *operation, guint item)
{
    const Lifecycle *life = operation_world(operation);
    Alteration *alteration = operation_kept(operation);
    g_autoptr(Slice) now = as_it_is(life, alteration->before);
    GError *error = NULL;

    (void)item;
    alteration->driver = now->present && write_driver(life, now, alteration->wanted, &error);
    operation_step_done(operation, error);
}

static void undo_driver(Operation *operation, guint item)
{
    const Lifecycle *life = operation_world(operation);
    const Alteration *alteration = operation_kept(operation);
    gboolean changed = alteration->driver || operation_is_replayed(operation);
    g_autoptr(Slice) now = as_it_is(life, alteration->before);
    GError *error = NULL;

    (void)item;
    if (changed && now->present)
        write_driver(life, now, alteration->before, &error);
    operation_step_done(operation, error);
}

/* Not cancelled: an incomplete file is worse than a second more. */
static void modify_definition(Operation *operation, const Slice *slice, MdevctlFunc func)
{
    const Lifecycle *life = operation_world(operation);
    HostRoot *root = host_root(life->host);
    g_autoptr(Definition) definition =
        definition_read(root, mdevctl_parent(slice->gpu), slice->uuid);
    g_autofree char *json = NULL;

    if (!definition) {
        operation_step_done(operation, NULL);
        return;
    }
    json = mdevctl_changed_json(root, definition, slice);
    const char *words[] = {"modify",           "--uuid",     definition->uuid, "--parent",
                           definition->parent, "--jsonfile", "/dev/stdin",     NULL};

    mdevctl_run(words, json, NULL, func, operation);
}

static void definition_modified(const GError *error, void *operation)
{
    Alteration *alteration = operation_kept(operation);

    alteration->definition = !error;
    operation_step_ended(error, operation);
}

static void run_define(Operation *operation, guint item)
{
    const Alteration *alteration = operation_kept(operation);

    (void)item;
    modify_definition(operation, alteration->wanted, definition_modified);
}

static void undo_define(Operation *operation, guint item)
{
    const Alteration *alteration = operation_kept(operation);

    (void)item;
    if (alteration->definition || operation_is_replayed(operation))
        modify_definition(operation, alteration->before, operation_step_ended);
    else
        operation_step_done(operation, NULL);
}

/* From the journal. One of an older vgpud has no details: the database has the desired state. */
static Alteration *read_details(const Operation *operation)
{
    const Lifecycle *life = operation_world(operation);
    const Slice *known = slices_find(life->slices, operation_object(operation, 0));
    GVariant *details = operation_details(operation);
    g_autoptr(GVariant) before = g_variant_lookup_value(details, BEFORE, G_VARIANT_TYPE_VARDICT);
    g_autoptr(GVariant) wanted = g_variant_lookup_value(details, WANTED, G_VARIANT_TYPE_VARDICT);
    Alteration *alteration = g_new0(Alteration, 1);

    if (before && wanted) {
        alteration->before = slice_from_dict(before);
        alteration->wanted = slice_from_dict(wanted);
    } else if (known) {
        alteration->before = as_it_is(life, known);
        alteration->wanted = slice_copy(known);
    } else {
        g_clear_pointer(&alteration, g_free);
    }
    return alteration;
}

static void plan_change(Operation *operation)
{
    static const OperationStep store = {"store", run_store, undo_store, FALSE};
    static const OperationStep driver = {"driver", run_driver, undo_driver, FALSE};
    static const OperationStep define = {"define", run_define, undo_define, FALSE};
    Alteration *alteration = read_details(operation);

    if (!alteration)
        return;
    operation_keep(operation, alteration, alteration_free);
    operation_add_step(operation, &store, 0);
    if (!slice_is_vgpu(alteration->wanted))
        return;
    operation_add_step(operation, &driver, 0);
    operation_add_step(operation, &define, 0);
}

static void change_ended(Operation *operation, const GError *error)
{
    const Lifecycle *life = operation_world(operation);

    if (error && operation_is_replayed(operation))
        g_message("the change of %s was undone: %s", operation_object(operation, 0),
                  error->message);
    lifecycle_settle(life, operation_object(operation, 0), error, "changed");
}

/* @wanted: the slice as it will be. */
static gboolean alteration_start(const Lifecycle *life, const Slice *wanted,
                                 OperationRequest *request, GError **error)
{
    const char *objects[] = {wanted->uuid, NULL};
    g_autoptr(Slice) before = as_it_is(life, slices_find(life->slices, wanted->uuid));
    GVariantDict details;

    g_variant_dict_init(&details, NULL);
    g_variant_dict_insert_value(&details, BEFORE, slice_to_dict(before));
    g_variant_dict_insert_value(&details, WANTED, slice_to_dict(wanted));
    request->kind = &alteration_kind;
    request->objects = objects;
    request->details = g_variant_dict_end(&details);
    return operations_start(life->operations, request, error);
}

const OperationKind alteration_kind = {.name = "change",
                                       .doing = "being changed",
                                       .what = "the change",
                                       .replay = OPERATION_FINISH,
                                       .step_time = 60,
                                       .plan = plan_change,
                                       .ended = change_ended};

/* A VMM has read the display's configuration when it opened the vGPU. */
static gboolean check_display(const Vgpus *vgpus, const Slice *slice, const Change *asked,
                              GError **error)
{
    g_autoptr(Vgpu) vgpu = NULL;

    if (!change_has(asked, "Display"))
        return TRUE;
    if (!slice_is_vgpu(slice)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "slice %s can't have a display: Display is for vGPUs", slice->uuid);
        return FALSE;
    }
    vgpu = vgpu_read(host_root(vgpus->host), slice->uuid);
    if (!vgpu || g_str_equal(vgpu->device, "closed") ||
        sysfs_number(host_root(vgpus->host), vgpu->dir, "display", 0) == asked->values->display)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "vGPU %s is open in a VM, so its display can't change; shut the VM down, or detach "
                "the vGPU from it, first",
                slice->uuid);
    return FALSE;
}

/* Its users are the old tenant's, and so are the shaders that its guard keeps. */
static gboolean check_tenant(const Vgpus *vgpus, const Slice *slice, const Change *asked,
                             GError **error)
{
    g_autoptr(GHashTable) members = NULL;
    g_autofree char *user = NULL;

    if (!change_has(asked, "Tenant") || slice_is_vgpu(slice) ||
        g_str_equal(asked->values->tenant, slice->tenant))
        return TRUE;
    members = arbiters_members(host_arbiters(vgpus->host), slice->gpu);
    user = claims_user(vgpus->claims, members, slice);
    if (!user)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "slice %s is used by %s, so its tenant can't change; end that first", slice->uuid,
                user);
    return FALSE;
}

/*
 * The slice as it would be; NULL if that is not possible, or @member may not request it; NULL: an
 * administrator.
 */
static Slice *find_change(const Vgpus *vgpus, const Slice *slice, const Change *asked,
                          const char *member, GError **error)
{
    g_autoptr(Slice) wanted = NULL;

    if (change_has(asked, "Tenant") && member) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED,
                    "only an administrator can give %s to another tenant", slice->uuid);
        return NULL;
    }
    if (!check_display(vgpus, slice, asked, error) || !check_tenant(vgpus, slice, asked, error))
        return NULL;
    wanted = placing_change(vgpus->host, vgpus->slices, vgpus->tenants, slice, asked, error);
    if (wanted && member && !vgpu_call_is_entitled(vgpus, member, wanted, slice, error))
        return NULL;
    return g_steal_pointer(&wanted);
}

static void begin_change(Vgpus *vgpus, GDBusMethodInvocation *invocation, const Caller *caller,
                         const Slice *wanted)
{
    VgpuCall *call = vgpu_call_new(vgpus, invocation, NULL);
    OperationRequest request = {.done = vgpu_call_ended};
    GError *error = NULL;

    vgpu_call_ask(call, caller, &request);
    if (!alteration_start(vgpus->life, wanted, &request, &error))
        vgpu_call_refuse(call, error);
}

static void change_slice(GDBusMethodInvocation *invocation, const Caller *caller, Vgpus *vgpus,
                         const char *member)
{
    const char *uuid;
    g_autoptr(GVariant) dict = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(Change) asked = NULL;
    g_autoptr(Slice) wanted = NULL;
    const Slice *slice;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s@a{sv})", &uuid, &dict);
    asked = change_parse(dict, &error);
    slice = asked ? vgpu_call_slice(vgpus, uuid, caller, &error) : NULL;
    if (slice && member && *slice->owner)
        g_set_error(&error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED,
                    "slice %s was made for %s, so only an administrator can change it", slice->uuid,
                    slice->owner);
    else if (slice)
        wanted = find_change(vgpus, slice, asked, member, &error);
    if (!wanted)
        call_fail(invocation, error);
    else if (asked->dry_run)
        call_answer(invocation, NULL);
    else
        begin_change(vgpus, invocation, caller, wanted);
}

void vgpu_set(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    change_slice(invocation, caller, data, NULL);
}

void vgpu_set_own(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    change_slice(invocation, caller, data, caller->user);
}
