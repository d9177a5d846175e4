/* SPDX-License-Identifier: MIT */
#include "agent_error.h"
#include "dict_read.h"
#include "mdevctl.h"
#include "vgpu.h"
#include "vgpu_call.h"

static void started(const GError *error, void *data)
{
    VgpuCall *call = data;

    slices_update(call->vgpus->slices, call->uuids[0]);
    if (error)
        g_dbus_method_invocation_return_gerror(call->invocation, error);
    else
        vgpu_manager_complete_start_vgpu(host_manager(call->vgpus->host), call->invocation);
    vgpu_call_free(call);
}

static void start(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Vgpus *vgpus = data;
    g_autoptr(GVariant) dict = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(Vgpu) vgpu = NULL;
    const char *uuid;
    const Slice *slice;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s@a{sv})", &uuid, &dict);
    slice = dict_read(dict, NULL, 0, &error) ? vgpu_call_slice(vgpus, uuid, &error) : NULL;
    if (!slice) {
        g_dbus_method_invocation_return_gerror(invocation, error);
        return;
    }
    vgpu = vgpu_read(host_root(vgpus->host), slice->uuid);
    if (vgpu) {
        vgpu_manager_complete_start_vgpu(host_manager(vgpus->host), invocation);
        return;
    }
    g_message("vGPU %s is started by %s", slice->uuid, caller->user);
    mdevctl_run((const char *[]){"start", "--uuid", slice->uuid, NULL}, NULL, started,
                vgpu_call_new(vgpus, invocation, (char *[]){slice->uuid, NULL}));
}

gboolean vgpu_start_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                           const char *uuid, GVariant *options, void *data)
{
    (void)interface;
    (void)uuid;
    (void)options;
    vgpu_call_authorize(data, invocation, start, start);
    return TRUE;
}
