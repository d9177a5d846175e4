/* SPDX-License-Identifier: MIT */
/* StartSlice, StopSlice: whether, and how. */
#include "lib/bus.h"
#include "lib/vgpu.h"
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/daemon/host/call.h"
#include "host-agent/daemon/slices/mdevctl.h"
#include "host-agent/daemon/slices/placing.h"
#include "host-agent/model/request.h"

/* The vGPU that a call names, and @vgpu, what the kernel has of it; there are no options. */
static const Slice *vgpu_named(const Vgpus *vgpus, GDBusMethodInvocation *invocation,
                               const Caller *caller, Vgpu **vgpu, GError **error)
{
    g_autoptr(GVariant) dict = NULL;
    const char *asked;
    const Slice *slice;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s@a{sv})", &asked, &dict);
    slice = dict_read(dict, NULL, 0, error) ? vgpu_call_vgpu(vgpus, asked, caller, error) : NULL;
    *vgpu = slice ? vgpu_read(host_root(vgpus->host), slice->uuid) : NULL;
    return slice;
}

static gboolean may_start(const Vgpus *vgpus, const Slice *slice, GError **error)
{
    g_autoptr(Slice) wanted = slice_copy(slice);

    wanted->present = TRUE;
    if (placing_admit(vgpus->host, vgpus->slices, vgpus->tenants, ADMISSION_START, slice, wanted,
                      error))
        return TRUE;
    /* Its GPU or its tenant. libvirt's hook would take that for another driver's vGPU. */
    if (error && g_error_matches(*error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND))
        (*error)->code = AGENT_ERROR_FAILED;
    return FALSE;
}

void vgpu_start(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Vgpus *vgpus = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(Vgpu) vgpu = NULL;
    const Slice *slice;

    host_catch_up(vgpus->host);
    slice = vgpu_named(vgpus, invocation, caller, &vgpu, &error);
    if (vgpu)
        call_answer(invocation, NULL);
    else if (slice && may_start(vgpus, slice, &error))
        vgpu_call_begin(vgpus, invocation, caller, slice->uuid, &startup_kind, "started");
    else
        call_fail(invocation, error);
}

/* mdevctl's callout leaves the check of room to us: the ledger's entry reserves it meanwhile. */
static void run_reserve(Operation *operation, guint item)
{
    const Lifecycle *life = operation_world(operation);

    (void)item;
    slices_set_reserved(life->slices, operation_object(operation, 0));
    operation_step_done(operation, NULL);
}

/*
 * Has no rollback: if it fails because the vGPU has just been started by another, that vGPU stays.
 */
static void run_start(Operation *operation, guint item)
{
    const char *words[] = {"start", "--uuid", operation_object(operation, 0), NULL};

    (void)item;
    mdevctl_run(words, NULL, operation_cancellable(operation), operation_step_ended, operation);
}

static void startup_plan(Operation *operation)
{
    static const OperationStep reserve = {"reserve", run_reserve, NULL, FALSE};
    static const OperationStep start = {"start", run_start, NULL, FALSE};

    operation_add_step(operation, &reserve, 0);
    operation_add_step(operation, &start, 0);
}

static void startup_ended(Operation *operation, const GError *error)
{
    const Lifecycle *life = operation_world(operation);

    (void)error;
    slices_settle(life->slices, operation_object(operation, 0));
}

const OperationKind startup_kind = {.name = "start",
                                    .doing = "being started",
                                    .what = "the start",
                                    .replay = OPERATION_UNDO,
                                    .step_time = 60,
                                    .plan = startup_plan,
                                    .ended = startup_ended};

/* It can be started again, and neither a VM uses it nor a container that opens it later. */
static gboolean may_stop(const Vgpus *vgpus, const Slice *slice, const Vgpu *vgpu, GError **error)
{
    const char *container = claims_container(vgpus->claims, slice->uuid);

    if (!slice->defined) {
        g_set_error(
            error, AGENT_ERROR, AGENT_ERROR_FAILED,
            "cannot stop vGPU %s: it has no definition, so it would be lost; define it first "
            "(\"mdevctl define --uuid=%s\"), or remove it (\"vgpuctl slice remove %s\")",
            slice->uuid, slice->uuid, slice->uuid);
        return FALSE;
    }
    if (container) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "cannot stop vGPU %s: container %s has it; end that first", slice->uuid,
                    container);
        return FALSE;
    }
    if (g_str_equal(vgpu->device, "closed"))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "cannot stop vGPU %s: it is open in a VM; detach it from the VM, or shut the VM "
                "down, first "
                "(\"vgpuctl gpu users %s\" names the VM)",
                slice->uuid, slice->gpu);
    return FALSE;
}

void vgpu_stop(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Vgpus *vgpus = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(Vgpu) vgpu = NULL;
    const Slice *slice = vgpu_named(vgpus, invocation, caller, &vgpu, &error);

    if (slice && !vgpu)
        call_answer(invocation, NULL);
    else if (slice && may_stop(vgpus, slice, vgpu, &error))
        vgpu_call_begin(vgpus, invocation, caller, slice->uuid, &shutdown_kind, "stopped");
    else
        call_fail(invocation, error);
}

static void run_stop(Operation *operation, guint item)
{
    (void)item;
    removal_stop(operation, operation_object(operation, 0));
}

static void shutdown_plan(Operation *operation)
{
    static const OperationStep stop = {"stop", run_stop, NULL, FALSE};

    operation_add_step(operation, &stop, 0);
}

static void shutdown_ended(Operation *operation, const GError *error)
{
    lifecycle_settle(operation_world(operation), operation_object(operation, 0), error, "stopped");
}

/* An interrupted stop is not continued: nobody waits for it any more. */
const OperationKind shutdown_kind = {.name = "stop",
                                     .doing = "being stopped",
                                     .what = "the stop",
                                     .replay = OPERATION_UNDO,
                                     .step_time = 60,
                                     .plan = shutdown_plan,
                                     .ended = shutdown_ended};
