/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/model/request.h"
#include "lib/bus.h"
#include "lib/vgpu.h"

/* It can be started again, and no VM uses it. */
static gboolean may_stop(const Slice *slice, const Vgpu *vgpu, GError **error)
{
    if (!slice->defined) {
        g_set_error(
            error, AGENT_ERROR, AGENT_ERROR_FAILED,
            "cannot stop vGPU %s: it has no definition, so it would be lost; define it first "
            "(\"mdevctl define --uuid=%s\"), or remove it (\"vgpuctl vgpu remove %s\")",
            slice->uuid, slice->uuid, slice->uuid);
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

static void stop(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Vgpus *vgpus = data;
    g_autoptr(GVariant) dict = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(Vgpu) vgpu = NULL;
    const char *asked;
    const Slice *slice;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s@a{sv})", &asked, &dict);
    slice = dict_read(dict, NULL, 0, &error) ? vgpu_call_slice(vgpus, asked, &error) : NULL;
    vgpu = slice ? vgpu_read(host_root(vgpus->host), slice->uuid) : NULL;
    if (slice && !vgpu)
        vgpu_manager_complete_stop_vgpu(host_manager(vgpus->host), invocation);
    else if (slice && may_stop(slice, vgpu, &error))
        vgpu_call_begin(vgpus, invocation, caller, slice->uuid, &shutdown_kind, "stopped");
    else
        g_dbus_method_invocation_return_gerror(invocation, error);
}

gboolean vgpu_stop_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                          const char *uuid, GVariant *options, void *data)
{
    (void)interface;
    (void)uuid;
    (void)options;
    vgpu_call_authorize(data, invocation, stop, stop);
    return TRUE;
}
