/* SPDX-License-Identifier: MIT */
/*
 * SuspendSlice, ResumeSlice: the GPU memory of a slice's programs goes to the host's memory, by
 * vgpu-suspend, and what was promised to the slice is free for others. Resuming takes both back.
 */
#include "lib/bus.h"
#include "lib/program.h"
#include "host-agent/daemon/containers/share_group.h"
#include "host-agent/daemon/containers/transport.h"
#include "host-agent/daemon/engines/arbiter.h"
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/daemon/slices/placing.h"
#include "host-agent/model/request.h"

/* Each process may take 10 s for each of its steps. */
#define PROGRAM_S 600

/*
 * vgpud's own sandbox has none of NVIDIA's nodes, and memory that is written and executed, as a
 * driver may need, is refused there.
 */
static const char *const outside[] = {
    "systemd-run",
    "--quiet",
    "--collect",
    "--wait",
    "--pipe",
    "--property=DevicePolicy=closed",
    "--property=DeviceAllow=char-nvidia* rw",
    "--property=ProtectSystem=strict",
    "--property=ProtectHome=yes",
    "--property=PrivateNetwork=yes",
    "--",
    "/usr/lib/mdev-vgpu/vgpu-suspend",
};

/* A step that runs vgpu-suspend. */
typedef struct {
    Operation *operation;
    const char *verb;
} Run;

static void ran(const char *output, const GError *cause, void *data)
{
    g_autofree Run *run = data;
    const char *uuid = operation_object(run->operation, 0);
    GError *error = NULL;

    (void)output;
    if (cause)
        error = g_error_new(AGENT_ERROR, AGENT_ERROR_FAILED, "cannot %s slice %s: %s", run->verb,
                            uuid, cause->message);
    operation_step_done(run->operation, error);
}

static GPtrArray *command_line(const char *verb, const GArray *pids, guint64 bytes)
{
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);

    for (gsize i = 0; i < G_N_ELEMENTS(outside); i++)
        g_ptr_array_add(argv, g_strdup(outside[i]));
    if (bytes) {
        g_ptr_array_add(argv, g_strdup("--bytes"));
        g_ptr_array_add(argv, g_strdup_printf("%" G_GUINT64_FORMAT, bytes));
    }
    g_ptr_array_add(argv, g_strdup(verb));
    for (guint i = 0; i < pids->len; i++)
        g_ptr_array_add(argv, g_strdup_printf("%u", g_array_index(pids, guint, i)));
    g_ptr_array_add(argv, NULL);
    return argv;
}

/* Of all processes that are the slice's now. Not cancelled: a half of them would be the worst. */
static void run_all(Operation *operation, const char *verb)
{
    const Lifecycle *life = operation_world(operation);
    const char *uuid = operation_object(operation, 0);
    const Slice *slice = slices_find(life->slices, uuid);
    g_autoptr(GArray) pids = g_array_new(FALSE, FALSE, sizeof(guint));
    g_autoptr(GPtrArray) argv = NULL;
    Program program = {.seconds = PROGRAM_S};
    guint64 bytes = 0;
    Run *run;

    if (!slice || !arbiter_members_read(host_root(life->host), slice->gpu, uuid, pids, &bytes)) {
        operation_step_done(operation,
                            g_error_new(AGENT_ERROR, AGENT_ERROR_FAILED,
                                        "cannot %s slice %s: the arbiter of its GPU does not say "
                                        "which processes use it; see \"systemctl status "
                                        "vgpu-arbiter@%s\"",
                                        verb, uuid, slice ? slice->gpu : "GPU"));
        return;
    }
    if (!pids->len) {
        operation_step_done(operation, NULL);
        return;
    }
    argv = command_line(verb, pids, g_str_equal(verb, "suspend") ? bytes : 0);
    program.argv = (const char *const *)argv->pdata;
    run = g_new0(Run, 1);
    run->operation = operation;
    run->verb = verb;
    program_start(&program, NULL, ran, run);
}

static void run_suspend(Operation *operation, guint item)
{
    (void)item;
    run_all(operation, "suspend");
}

static void run_resume(Operation *operation, guint item)
{
    (void)item;
    run_all(operation, "resume");
}

static void mark(Operation *operation, gboolean suspended)
{
    const Lifecycle *life = operation_world(operation);
    GError *error = NULL;

    slices_set_suspended(life->slices, operation_object(operation, 0), suspended, &error);
    operation_step_done(operation, error);
}

static void run_give(Operation *operation, guint item)
{
    (void)item;
    mark(operation, TRUE);
}

static void run_take(Operation *operation, guint item)
{
    (void)item;
    mark(operation, FALSE);
}

/*
 * What has joined meanwhile is suspended, too: from the second step on nothing of the slice gets
 * memory.
 */
static void suspend_plan(Operation *operation)
{
    static const OperationStep suspend = {"suspend", run_suspend, run_resume, FALSE};
    static const OperationStep give = {"give", run_give, run_take, FALSE};
    static const OperationStep rest = {"rest", run_suspend, NULL, FALSE};

    operation_add_step(operation, &suspend, 0);
    operation_add_step(operation, &give, 0);
    operation_add_step(operation, &rest, 0);
}

static void resume_plan(Operation *operation)
{
    static const OperationStep take = {"take", run_take, run_give, FALSE};
    static const OperationStep resume = {"resume", run_resume, run_suspend, FALSE};

    operation_add_step(operation, &take, 0);
    operation_add_step(operation, &resume, 0);
}

static void ended(Operation *operation, const GError *error)
{
    const Lifecycle *life = operation_world(operation);
    const char *uuid = operation_object(operation, 0);
    const Slice *slice;

    slices_settle(life->slices, uuid);
    slice = slices_find(life->slices, uuid);
    if (!error && slice)
        host_event(life->host, "slice-changed", slice->gpu, uuid, "slice %s was %s", uuid,
                   slice->suspended ? "suspended" : "resumed");
}

const OperationKind suspension_kind = {.name = "suspend",
                                       .doing = "being suspended",
                                       .what = "the suspension",
                                       .replay = OPERATION_UNDO,
                                       .step_time = PROGRAM_S,
                                       .plan = suspend_plan,
                                       .ended = ended};

const OperationKind resumption_kind = {.name = "resume",
                                       .doing = "being resumed",
                                       .what = "the resumption",
                                       .replay = OPERATION_UNDO,
                                       .step_time = PROGRAM_S,
                                       .plan = resume_plan,
                                       .ended = ended};

/* The slice that a call names; there are no options. */
static const Slice *named(const Vgpus *vgpus, GDBusMethodInvocation *invocation, GError **error)
{
    g_autoptr(GVariant) dict = NULL;
    const char *asked;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s@a{sv})", &asked, &dict);
    return dict_read(dict, NULL, 0, error) ? vgpu_call_container_slice(vgpus, asked, error) : NULL;
}

static gboolean is_alone(const Vgpus *vgpus, const Slice *slice)
{
    g_autoptr(Slice) share = share_group_share(vgpus->slices, vgpus->claims, slice);

    return share && share->vram == slice->vram;
}

/* Only what uses CUDA, with the slice's own processes, can be suspended. */
static gboolean may_suspend(const Vgpus *vgpus, const Slice *slice, GError **error)
{
    HostRoot *root = host_root(vgpus->host);
    g_auto(GStrv) nodes = cuda_door_nodes(root, slice->gpu);
    g_autoptr(CudaDoor) cuda = nodes[0] ? cuda_door_find(root) : NULL;

    if (slice->transport != SLICE_TRANSPORT_NATIVE)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                    "cannot suspend slice %s: its door is %s, and only programs that use CUDA "
                    "through the door native can be suspended",
                    slice->uuid, slice_transport_name(slice->transport));
    else if (!cuda)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                    "cannot suspend slice %s: GPU %s has no CUDA here, and programs that use "
                    "Vulkan only cannot be suspended",
                    slice->uuid, slice->gpu);
    else if (!is_alone(vgpus, slice))
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "cannot suspend slice %s: its container has several slices of GPU %s, whose "
                    "programs are not told apart",
                    slice->uuid, slice->gpu);
    else
        return cuda_door_link(root, cuda, error);
    return FALSE;
}

static void change(GDBusMethodInvocation *invocation, const Caller *caller, Vgpus *vgpus,
                   gboolean suspended)
{
    g_autoptr(GError) error = NULL;
    const Slice *slice = named(vgpus, invocation, &error);

    if (slice && slice->suspended == suspended)
        g_dbus_method_invocation_return_value(invocation, NULL);
    else if (slice && suspended && may_suspend(vgpus, slice, &error))
        vgpu_call_begin(vgpus, invocation, caller, slice->uuid, &suspension_kind, "suspended");
    else if (slice && !suspended &&
             placing_admit_resumed(vgpus->host, vgpus->slices, vgpus->tenants, slice, &error))
        vgpu_call_begin(vgpus, invocation, caller, slice->uuid, &resumption_kind, "resumed");
    else
        g_dbus_method_invocation_return_gerror(invocation, error);
}

void slice_suspend(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    change(invocation, caller, data, TRUE);
}

void slice_resume(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    change(invocation, caller, data, FALSE);
}
