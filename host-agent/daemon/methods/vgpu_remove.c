/* SPDX-License-Identifier: MIT */
/* RemoveSlice: whether a slice may go, and how it goes. */
#include <errno.h>
#include <unistd.h>

#include "lib/bus.h"
#include "lib/vgpu.h"
#include "lib/mdev.h"
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/daemon/host/call.h"
#include "host-agent/daemon/modes/kernel_call.h"
#include "host-agent/daemon/slices/mdevctl.h"
#include "host-agent/model/request.h"

/* A vGPU that a VM has open is never removed. */
static gboolean check_closed(const Vgpus *vgpus, const char *uuid, GError **error)
{
    g_autoptr(Vgpu) vgpu = vgpu_read(host_root(vgpus->host), uuid);

    if (!vgpu || g_str_equal(vgpu->device, "closed"))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "vGPU %s on GPU %s is open in a VM; detach it from the VM, or shut the VM down, "
                "first (\"vgpuctl gpu users %s\" names it)",
                uuid, vgpu->gpu, vgpu->gpu);
    return FALSE;
}

/* By force neither: the engine that made it would not know. */
static gboolean check_unowned(const Slice *slice, GError **error)
{
    if (!*slice->owner)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "%s has %s of GPU %s; \"vgpuctl owner release %s\" removes all of its slices",
                slice->owner, slice->uuid, slice->gpu, slice->owner);
    return FALSE;
}

/* A container's vGPU is not removed either; a slice that only the governor knows is, by force. */
static gboolean check_unused(const Vgpus *vgpus, const Slice *slice, GError **error)
{
    g_autoptr(GHashTable) members = arbiters_members(host_arbiters(vgpus->host), slice->gpu);
    g_autofree char *user = claims_user(vgpus->claims, members, slice);

    if (!user)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "%s has slice %s of GPU %s; end it first. With --force the slice is removed: "
                "programs of the door native keep their limits but are no longer watched, those of "
                "the door guarded lose the GPU",
                user, slice->uuid, slice->gpu);
    return FALSE;
}

typedef struct {
    gboolean dry_run;
    gboolean force;
} Options;

static gboolean read_options(GVariant *dict, Options *options, GError **error)
{
    const DictKey keys[] = {
        {"DryRun", 'b', &options->dry_run, NULL, 0, 0},
        {"Force", 'b', &options->force, NULL, 0, 0},
    };

    return dict_read(dict, keys, G_N_ELEMENTS(keys), error);
}

/* The slice to remove, if that is allowed; NULL with @error. */
static const Slice *find_unused(const Vgpus *vgpus, const char *name, const Caller *caller,
                                const Options *options, GError **error)
{
    const Slice *slice = vgpu_call_slice(vgpus, name, caller, error);
    gboolean spared = slice && !slice_is_vgpu(slice) && options->force;

    if (!slice || !check_unowned(slice, error) || !check_closed(vgpus, slice->uuid, error) ||
        (!spared && !check_unused(vgpus, slice, error)))
        return NULL;
    return slice;
}

static void begin_removal(Vgpus *vgpus, GDBusMethodInvocation *invocation, const Caller *caller,
                          const char *uuid)
{
    VgpuCall *call = vgpu_call_new(vgpus, invocation, (char *[]){(char *)uuid, NULL});
    OperationRequest request = {.kind = &removal_kind,
                                .objects = (const char *[]){call->uuids[0], NULL},
                                .done = vgpu_call_ended};
    GError *error = NULL;

    g_message("%s is removed by %s", uuid, caller->user);
    vgpu_call_ask(call, caller, &request);
    if (!operations_start(vgpus->life->operations, &request, &error))
        vgpu_call_refuse(call, error);
}

void vgpu_remove(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Vgpus *vgpus = data;
    const char *name;
    g_autoptr(GVariant) dict = NULL;
    g_autoptr(GError) error = NULL;
    Options options = {0};
    const Slice *slice = NULL;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s@a{sv})", &name, &dict);
    if (read_options(dict, &options, &error))
        slice = find_unused(vgpus, name, caller, &options, &error);
    if (!slice)
        call_fail(invocation, error);
    else if (options.dry_run)
        call_answer(invocation, NULL);
    else
        begin_removal(vgpus, invocation, caller, slice->uuid);
}

/* How long a VM may take to release the group after it has closed the vGPU. */
#define HOLD_AGAIN_MS 100
#define HOLD_TRIES    100

/**
 * Hold - a vGPU that no VM can open any more
 * @group: its VFIO group, held open; -1: none
 * @stops: the step stops it, too
 */
typedef struct {
    Operation *operation;
    char *uuid;
    int group;
    guint tries;
    gboolean stops;
} Hold;

static void hold_free(void *data)
{
    Hold *hold = data;

    if (hold->group >= 0)
        close(hold->group);
    g_free(hold->uuid);
    g_free(hold);
}

/* FALSE with errno. Without a node no VM can open the vGPU. */
static gboolean open_group(Hold *hold, HostRoot *root)
{
    g_autofree char *path = mdev_node(root, hold->uuid);

    hold->group = path ? kernel_hold(root, path) : -1;
    return !path || hold->group >= 0 || errno == ENOENT || errno == ENODEV || errno == ENXIO;
}

static GError *error_of(const Hold *hold, int code)
{
    if (code == EBUSY)
        return g_error_new(AGENT_ERROR, AGENT_ERROR_IN_USE,
                           "a VM has just opened vGPU %s, or still closes it; shut the VM down, or "
                           "detach the vGPU from it, and try again",
                           hold->uuid);
    return g_error_new(AGENT_ERROR, AGENT_ERROR_FAILED,
                       "cannot reserve vGPU %s while it is removed (VFIO's group: %s)", hold->uuid,
                       g_strerror(code));
}

static void vgpu_stopped(const GError *error, void *data)
{
    Hold *hold = data;
    Operation *operation = hold->operation;

    hold_free(hold);
    operation_step_ended(error, operation);
}

/* Not cancelled once it has begun: mdevctl has its own timeout. */
static void stop_by_mdevctl(const char *uuid, MdevctlFunc func, void *data)
{
    const char *words[] = {"stop", "--uuid", uuid, NULL};

    mdevctl_run(words, NULL, NULL, func, data);
}

/* @code: 0: it is held, or does not exist. */
static void end_hold(Hold *hold, int code, gboolean present)
{
    Operation *operation = hold->operation;

    if (code) {
        GError *error = error_of(hold, code);

        hold_free(hold);
        operation_step_done(operation, error);
    } else if (hold->stops && present) {
        stop_by_mdevctl(hold->uuid, vgpu_stopped, hold);
    } else if (hold->stops) {
        vgpu_stopped(NULL, hold);
    } else {
        operation_keep(operation, hold, hold_free);
        operation_step_done(operation, NULL);
    }
}

/*
 * VFIO's group can be opened once. While it is held, no VM opens the vGPU between the check of its
 * state and its end: otherwise the kernel would ask QEMU to unplug it from a VM that has just
 * started. A VM that has closed the vGPU keeps the group until its memory is unpinned.
 */
static gboolean try_hold(void *data)
{
    Hold *hold = data;
    Operation *operation = hold->operation;
    const Lifecycle *life;
    g_autoptr(Vgpu) vgpu = NULL;
    gboolean held, closed;
    int code = 0;

    if (operation_is_abandoned(operation)) {
        vgpu_stopped(NULL, hold);
        return G_SOURCE_REMOVE;
    }
    life = operation_world(operation);
    held = open_group(hold, host_root(life->host));
    code = held ? 0 : errno;
    vgpu = vgpu_read(host_root(life->host), hold->uuid);
    closed = !vgpu || g_str_equal(vgpu->device, "closed");
    if (code == EBUSY && vgpu && closed && hold->tries++ < HOLD_TRIES &&
        !g_cancellable_is_cancelled(operation_cancellable(operation)))
        g_timeout_add(HOLD_AGAIN_MS, try_hold, hold);
    else
        end_hold(hold, !vgpu ? 0 : closed ? code : EBUSY, vgpu != NULL);
    return G_SOURCE_REMOVE;
}

static void begin_hold(Operation *operation, const char *uuid, gboolean stops)
{
    Hold *hold = g_new0(Hold, 1);

    hold->operation = operation;
    hold->uuid = g_strdup(uuid);
    hold->group = -1;
    hold->stops = stops;
    g_idle_add(try_hold, hold);
}

void removal_stop(Operation *operation, const char *uuid)
{
    begin_hold(operation, uuid, TRUE);
}

void removal_undefine(Operation *operation, const char *uuid)
{
    const Lifecycle *life = operation_world(operation);
    const Slice *slice = slices_find(life->slices, uuid);
    g_autoptr(Definition) definition = NULL;

    /* Another driver's device may have the same UUID below another parent. */
    if (slice)
        definition = definition_read(host_root(life->host), mdevctl_parent(slice->gpu), uuid);
    if (definition) {
        const char *words[] = {"undefine", "--uuid", uuid, "--parent", definition->parent, NULL};

        mdevctl_run(words, NULL, NULL, operation_step_ended, operation);
    } else {
        operation_step_done(operation, NULL);
    }
}

static void run_hold(Operation *operation, guint item)
{
    const Lifecycle *life = operation_world(operation);

    (void)item;
    slices_set_leaving(life->slices, operation_object(operation, 0));
    begin_hold(operation, operation_object(operation, 0), FALSE);
}

static void undo_hold(Operation *operation, guint item)
{
    (void)item;
    operation_keep(operation, NULL, NULL);
    operation_step_done(operation, NULL);
}

/* Even if there is nothing to stop: a crash may have happened between this step and the next. */
static void run_stop(Operation *operation, guint item)
{
    const Lifecycle *life = operation_world(operation);
    const char *uuid = operation_object(operation, 0);
    g_autoptr(Vgpu) vgpu = vgpu_read(host_root(life->host), uuid);

    (void)item;
    if (!vgpu)
        operation_step_done(operation, NULL);
    else if (operation_kept(operation))
        stop_by_mdevctl(uuid, operation_step_ended, operation);
    else
        removal_stop(operation, uuid);
}

static void run_undefine(Operation *operation, guint item)
{
    (void)item;
    operation_keep(operation, NULL, NULL);
    removal_undefine(operation, operation_object(operation, 0));
}

static void run_forget(Operation *operation, guint item)
{
    const Lifecycle *life = operation_world(operation);
    const char *uuid = operation_object(operation, 0);
    const Slice *known = slices_find(life->slices, uuid);
    g_autoptr(Slice) slice = known ? slice_copy(known) : NULL;
    GError *error = NULL;

    (void)item;
    /* A slice that is only in the database would be back after a restart. */
    if (!slices_forget(life->slices, uuid, &error)) {
        operation_step_done(operation, error);
        return;
    }
    if (slice && slice_is_vgpu(slice))
        host_event(life->host, "vgpu-removed", slice->gpu, uuid, "vGPU %s was removed", uuid);
    else if (slice)
        host_event(life->host, "slice-removed", slice->gpu, uuid, "slice %s of GPU %s was removed",
                   uuid, slice->gpu);
    claims_forget(life->claims, uuid);
    operation_step_done(operation, NULL);
}

static void plan_removal(Operation *operation)
{
    static const OperationStep hold = {"hold", run_hold, undo_hold, FALSE};
    static const OperationStep stop_vgpu = {"stop", run_stop, NULL, TRUE};
    static const OperationStep undefine = {"undefine", run_undefine, NULL, TRUE};
    static const OperationStep forget = {"forget", run_forget, NULL, TRUE};
    const Lifecycle *life = operation_world(operation);
    const Slice *slice = slices_find(life->slices, operation_object(operation, 0));

    /* The rest is for slices in the kernel. */
    if (slice && slice_is_vgpu(slice)) {
        operation_add_step(operation, &hold, 0);
        operation_add_step(operation, &stop_vgpu, 0);
        operation_add_step(operation, &undefine, 0);
    }
    operation_add_step(operation, &forget, 0);
}

static void removal_ended(Operation *operation, const GError *error)
{
    const Lifecycle *life = operation_world(operation);

    if (error && operation_is_replayed(operation))
        g_warning("vGPU %s was left incomplete: %s; it stays", operation_object(operation, 0),
                  error->message);
    slices_settle(life->slices, operation_object(operation, 0));
}

const OperationKind removal_kind = {.name = "remove",
                                    .doing = "being removed",
                                    .what = "the removal",
                                    .replay = OPERATION_FINISH,
                                    .step_time = 60,
                                    .plan = plan_removal,
                                    .ended = removal_ended};
