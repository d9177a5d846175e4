/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/model/request.h"
#include "lib/bus.h"
#include "lib/vgpu.h"

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

/* A container's vGPU is not removed either; a slice that only the governor knows is, by force. */
static gboolean check_unused(const Vgpus *vgpus, const Slice *slice, GError **error)
{
    g_autofree char *user = claims_user(vgpus->claims, host_counters(vgpus->host), slice);

    if (!user)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "%s has slice %s of GPU %s; end it first. With --force the slice is removed, and "
                "its user continues without enforced limits",
                user, slice->uuid, slice->gpu);
    return FALSE;
}

typedef struct {
    gboolean dry_run;
    gboolean force;
} Options;

/* There is no force for vGPUs. */
static gboolean read_options(GVariant *dict, gboolean slice, Options *options, GError **error)
{
    const DictKey keys[] = {
        {"DryRun", 'b', &options->dry_run, NULL, 0, 0},
        {"Force", 'b', &options->force, NULL, 0, 0},
    };

    return dict_read(dict, keys, slice ? 2 : 1, error);
}

static gboolean is_for_slice(GDBusMethodInvocation *invocation)
{
    return g_str_equal(g_dbus_method_invocation_get_method_name(invocation), "RemoveSlice");
}

/* The slice to remove, if that is allowed; NULL with @error. */
static const Slice *find_unused(const Vgpus *vgpus, gboolean slices, const char *name,
                                const Options *options, GError **error)
{
    const Slice *slice = slices ? vgpu_call_container_slice(vgpus, name, error)
                                : vgpu_call_slice(vgpus, name, error);
    gboolean spared = slice && !slice_is_vgpu(slice) && options->force;

    if (!slice || !check_closed(vgpus, slice->uuid, error) ||
        (!spared && !check_unused(vgpus, slice, error)))
        return NULL;
    return slice;
}

static void begin(Vgpus *vgpus, GDBusMethodInvocation *invocation, const Caller *caller,
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

static void remove_vgpu(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Vgpus *vgpus = data;
    gboolean slices = is_for_slice(invocation);
    const char *name;
    g_autoptr(GVariant) dict = NULL;
    g_autoptr(GError) error = NULL;
    Options options = {0};
    const Slice *slice = NULL;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s@a{sv})", &name, &dict);
    if (read_options(dict, slices, &options, &error))
        slice = find_unused(vgpus, slices, name, &options, &error);
    if (!slice)
        g_dbus_method_invocation_return_gerror(invocation, error);
    else if (options.dry_run)
        g_dbus_method_invocation_return_value(invocation, NULL);
    else
        begin(vgpus, invocation, caller, slice->uuid);
}

gboolean vgpu_remove_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                            const char *uuid, GVariant *options, void *data)
{
    (void)interface;
    (void)uuid;
    (void)options;
    vgpu_call_authorize(data, invocation, remove_vgpu, remove_vgpu);
    return TRUE;
}
