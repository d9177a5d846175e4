/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/daemon/slices/placing.h"
#include "host-agent/model/request.h"
#include "lib/bus.h"
#include "lib/vgpu.h"

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

static void start(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
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
    if (vgpu)
        vgpu_manager_complete_start_vgpu(host_manager(vgpus->host), invocation);
    else if (slice && may_start(vgpus, slice, &error))
        vgpu_call_begin(vgpus, invocation, caller, slice->uuid, &startup_kind, "started");
    else
        g_dbus_method_invocation_return_gerror(invocation, error);
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
