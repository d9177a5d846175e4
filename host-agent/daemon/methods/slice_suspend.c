/* SPDX-License-Identifier: MIT */
/*
 * SuspendSlice, ResumeSlice: the GPU memory of a slice's programs goes to the host's memory, by
 * vgpu-suspend, and what was promised to the slice is free for others. Resuming takes both back.
 * The programs of a vGPU are its engine's CUDA workers; what was promised to a vGPU stays its own.
 */
#include "lib/bus.h"
#include "lib/program.h"
#include "host-agent/daemon/containers/share_group.h"
#include "host-agent/daemon/containers/transport.h"
#include "host-agent/daemon/host/call.h"
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/daemon/slices/placing.h"
#include "host-agent/model/request.h"
#include "lib/vgpu.h"

/* Each process may take 10 s for each of its steps. */
#define PROGRAM_S 600
/* After the limit of a unit that is stopped it is killed, which takes some time, too. */
#define STOP_S (PROGRAM_S + 60)

/*
 * vgpud's own sandbox has none of NVIDIA's nodes, and memory that is written and executed, as a
 * driver may need, is refused there. The unit outlives a vgpud that is killed. A stop waits for its
 * end: what is killed between two steps leaves some of the processes suspended.
 */
static const char *const outside[] = {
    "--quiet",
    "--collect",
    "--wait",
    "--pipe",
    "--property=KillSignal=SIGCONT",
    "--property=TimeoutStopSec=" G_STRINGIFY(PROGRAM_S),
    "--property=DevicePolicy=closed",
    "--property=DeviceAllow=char-nvidia* rw",
    "--property=ProtectSystem=strict",
    "--property=ProtectHome=yes",
    "--property=PrivateNetwork=yes",
    /* Its locks, one for each GPU. */
    "--property=RuntimeDirectory=vgpu-suspend",
    "--property=RuntimeDirectoryMode=0700",
    "--property=RuntimeDirectoryPreserve=yes",
    "--",
    "/usr/lib/mdev-vgpu/vgpu-suspend",
};

/* A step that runs vgpu-suspend. */
typedef struct {
    Operation *operation;
    const char *verb;
} Run;

static void program_ran(const char *output, const GError *cause, void *data)
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

/* One for each slice: systemd refuses to run a second one meanwhile. */
static char *unit_of(const char *uuid)
{
    return g_strdup_printf("vgpu-suspend-%s.service", uuid);
}

/* @bytes: what they have of the GPU: the host must have room for it, and then the GPU again. */
static GPtrArray *command_line(const Run *run, const Slice *slice, const GArray *pids,
                               guint64 bytes)
{
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *unit = unit_of(operation_object(run->operation, 0));

    g_ptr_array_add(argv, g_strdup("systemd-run"));
    g_ptr_array_add(argv, g_strconcat("--unit=", unit, NULL));
    for (gsize i = 0; i < G_N_ELEMENTS(outside); i++)
        g_ptr_array_add(argv, g_strdup(outside[i]));
    g_ptr_array_add(argv, g_strdup("--gpu"));
    g_ptr_array_add(argv, g_strdup(slice->gpu));
    g_ptr_array_add(argv, g_strdup("--bytes"));
    g_ptr_array_add(argv, g_strdup_printf("%" G_GUINT64_FORMAT, bytes));
    g_ptr_array_add(argv, g_strdup(run->verb));
    for (guint i = 0; i < pids->len; i++)
        g_ptr_array_add(argv, g_strdup_printf("%u", g_array_index(pids, guint, i)));
    g_ptr_array_add(argv, NULL);
    return argv;
}

static const Slice *slice_of(const Run *run)
{
    const Lifecycle *life = operation_world(run->operation);

    return slices_find(life->slices, operation_object(run->operation, 0));
}

/* The processes that are the slice's now. */
static GError *find_processes(const Run *run, GArray *pids, guint64 *bytes)
{
    const Lifecycle *life = operation_world(run->operation);
    const char *uuid = operation_object(run->operation, 0);
    const Slice *slice = slice_of(run);
    g_autoptr(GHashTable) all =
        slice ? arbiters_members(host_arbiters(life->host), slice->gpu) : NULL;
    const SliceMembers *members = all ? g_hash_table_lookup(all, uuid) : NULL;

    if (members) {
        g_array_append_vals(pids, members->pids->data, members->pids->len);
        *bytes = members->used;
        return NULL;
    }
    return g_error_new(AGENT_ERROR, AGENT_ERROR_FAILED,
                       "cannot %s slice %s: the arbiter of its GPU does not say which processes "
                       "use it; see \"systemctl status vgpu-arbiter@%s\"",
                       run->verb, uuid, slice ? slice->gpu : "GPU");
}

/* Not cancelled: a half of them would be the worst. */
static void run_program(Run *run, const GArray *pids, guint64 bytes)
{
    g_autoptr(GPtrArray) argv = command_line(run, slice_of(run), pids, bytes);
    const Program program = {.argv = (const char *const *)argv->pdata, .seconds = PROGRAM_S};

    program_start(&program, NULL, program_ran, run);
}

/* If systemd had none to stop, it says so by an error; if one still runs, it refuses the next. */
static void ran_before(const char *output, const GError *cause, void *data)
{
    Run *run = data;
    g_autoptr(GArray) pids = g_array_new(FALSE, FALSE, sizeof(guint));
    guint64 bytes = 0;
    GError *error = NULL;

    (void)output;
    (void)cause;
    if (!operation_is_abandoned(run->operation))
        error = find_processes(run, pids, &bytes);
    if (pids->len && !error) {
        run_program(run, pids, bytes);
        return;
    }
    operation_step_done(run->operation, error);
    g_free(run);
}

/* Of all processes, after the end of what an earlier vgpud has begun. */
static void run_all(Operation *operation, const char *verb)
{
    g_autofree char *unit = unit_of(operation_object(operation, 0));
    const char *const argv[] = {"systemctl", "stop", unit, NULL};
    const Program stop = {.argv = argv, .seconds = STOP_S};
    Run *run = g_new0(Run, 1);

    run->operation = operation;
    run->verb = verb;
    program_start(&stop, NULL, ran_before, run);
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

static void mark_suspended(Operation *operation, gboolean suspended)
{
    const Lifecycle *life = operation_world(operation);
    GError *error = NULL;

    slices_set_suspended(life->slices, operation_object(operation, 0), suspended, &error);
    operation_step_done(operation, error);
}

static void run_give(Operation *operation, guint item)
{
    (void)item;
    mark_suspended(operation, TRUE);
}

static void run_take(Operation *operation, guint item)
{
    (void)item;
    mark_suspended(operation, FALSE);
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

/* Of a slice that counts as running: nothing that was promised to it is another's. */
static void resume_again_plan(Operation *operation)
{
    static const OperationStep resume = {"resume", run_resume, NULL, FALSE};

    operation_add_step(operation, &resume, 0);
}

static void suspension_ended(Operation *operation, const GError *error)
{
    lifecycle_settle(operation_world(operation), operation_object(operation, 0), error,
                     "suspended");
}

static void resumption_ended(Operation *operation, const GError *error)
{
    lifecycle_settle(operation_world(operation), operation_object(operation, 0), error, "resumed");
}

const OperationKind suspension_kind = {.name = "suspend",
                                       .doing = "being suspended",
                                       .what = "the suspension",
                                       .replay = OPERATION_UNDO,
                                       .step_time = PROGRAM_S,
                                       .plan = suspend_plan,
                                       .ended = suspension_ended};

const OperationKind resumption_kind = {.name = "resume",
                                       .doing = "being resumed",
                                       .what = "the resumption",
                                       .replay = OPERATION_UNDO,
                                       .step_time = PROGRAM_S,
                                       .plan = resume_plan,
                                       .ended = resumption_ended};

const OperationKind repeated_resumption_kind = {.name = "resume-again",
                                                .doing = "being resumed",
                                                .what = "the resumption",
                                                .replay = OPERATION_FINISH,
                                                .step_time = PROGRAM_S,
                                                .plan = resume_again_plan,
                                                .ended = resumption_ended};

/* The slice that a call names; there are no options. */
static const Slice *slice_named(const Vgpus *vgpus, GDBusMethodInvocation *invocation,
                                const Caller *caller, GError **error)
{
    g_autoptr(GVariant) dict = NULL;
    const char *asked;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s@a{sv})", &asked, &dict);
    return dict_read(dict, NULL, 0, error) ? vgpu_call_slice(vgpus, asked, caller, error) : NULL;
}

static gboolean check_alone(const Vgpus *vgpus, const Slice *slice, GError **error)
{
    g_autoptr(Slice) share = share_group_share(vgpus->slices, vgpus->claims, slice);

    if (share && share->vram == slice->vram)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "cannot suspend slice %s: its container has several slices of GPU %s, whose "
                "programs are not told apart",
                slice->uuid, slice->gpu);
    return FALSE;
}

/* NULL: its GPU has none here. */
static CudaDoor *cuda_of(HostRoot *root, const Slice *slice)
{
    g_auto(GStrv) nodes = cuda_door_nodes(root, slice->gpu);

    return nodes[0] ? cuda_door_find(root) : NULL;
}

/* Of a guest; one that has not been started has no programs. */
static gboolean is_vgpu_without_cuda(HostRoot *root, const Slice *slice)
{
    g_autoptr(Vgpu) vgpu = slice_is_vgpu(slice) ? vgpu_read(root, slice->uuid) : NULL;

    return slice_is_vgpu(slice) && !(vgpu && vgpu->cuda);
}

/* Only what uses CUDA, with the slice's own processes, can be suspended. */
static gboolean may_suspend(const Vgpus *vgpus, const Slice *slice, GError **error)
{
    HostRoot *root = host_root(vgpus->host);
    g_autoptr(CudaDoor) cuda = cuda_of(root, slice);

    if (slice->transport == SLICE_TRANSPORT_GUARDED)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                    "cannot suspend slice %s: its door is guarded, and only programs that use CUDA "
                    "through the door native or in a VM can be suspended",
                    slice->uuid);
    else if (!cuda)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                    "cannot suspend slice %s: GPU %s has no CUDA here, and programs that use "
                    "Vulkan only cannot be suspended",
                    slice->uuid, slice->gpu);
    else if (is_vgpu_without_cuda(root, slice))
        g_set_error(
            error, AGENT_ERROR, AGENT_ERROR_FAILED,
            "cannot suspend slice %s: its vGPU offers no CUDA, and programs that use Vulkan "
            "only cannot be suspended",
            slice->uuid);
    else
        return check_alone(vgpus, slice, error) && cuda_door_link(root, cuda, error);
    return FALSE;
}

/* Though it counts as running: if a way back has failed, or vgpu-suspend was run by hand. */
static gboolean may_be_suspended(const Vgpus *vgpus, const Slice *slice)
{
    HostRoot *root = host_root(vgpus->host);
    g_autoptr(CudaDoor) cuda = cuda_of(root, slice);

    return cuda && slice->transport != SLICE_TRANSPORT_GUARDED &&
           !is_vgpu_without_cuda(root, slice);
}

static gboolean begin_for_room(const Vgpus *vgpus, const Slice *slice, const OperationKind *kind,
                               GError **error)
{
    const char *const objects[] = {slice->uuid, NULL};
    const OperationRequest request = {
        .kind = kind, .objects = objects, .source = AUDIT_BY_PRESSURE, .background = TRUE};

    return operations_start(vgpus->life->operations, &request, error);
}

gboolean slice_suspend_for_room(const Slice *slice, void *data, GError **error)
{
    const Vgpus *vgpus = data;

    return may_suspend(vgpus, slice, error) &&
           begin_for_room(vgpus, slice, &suspension_kind, error);
}

void slice_suspend(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Vgpus *vgpus = data;
    g_autoptr(GError) error = NULL;
    const Slice *slice = slice_named(vgpus, invocation, caller, &error);

    if (slice)
        returns_forget(vgpus->returns, slice->uuid);
    if (slice && slice->suspended)
        call_answer(invocation, NULL);
    else if (slice && may_suspend(vgpus, slice, &error))
        vgpu_call_begin(vgpus, invocation, caller, slice->uuid, &suspension_kind, "suspended");
    else
        call_fail(invocation, error);
}

static gboolean may_resume(const Vgpus *vgpus, const Slice *slice, GError **error)
{
    return slice_is_promised(slice) ||
           placing_admit_resumed(vgpus->host, vgpus->slices, vgpus->tenants, slice, error);
}

gboolean slice_resume_with_room(const Slice *slice, void *data, GError **error)
{
    const Vgpus *vgpus = data;

    return may_resume(vgpus, slice, error) && begin_for_room(vgpus, slice, &resumption_kind, error);
}

void slice_resume(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Vgpus *vgpus = data;
    g_autoptr(GError) error = NULL;
    const Slice *slice = slice_named(vgpus, invocation, caller, &error);

    if (!slice || !may_resume(vgpus, slice, &error))
        call_fail(invocation, error);
    else if (slice->suspended)
        vgpu_call_begin(vgpus, invocation, caller, slice->uuid, &resumption_kind, "resumed");
    else if (may_be_suspended(vgpus, slice))
        vgpu_call_begin(vgpus, invocation, caller, slice->uuid, &repeated_resumption_kind,
                        "resumed");
    else
        call_answer(invocation, NULL);
}
