/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/daemon/slices/definition_check.h"
#include "host-agent/daemon/slices/mdevctl.h"
#include "host-agent/model/dict_read.h"
#include "lib/bus.h"
#include "lib/vgpu.h"

static void started(const GError *error, void *data)
{
    VgpuCall *call = data;

    slices_settle(call->vgpus->slices, call->uuids[0]);
    if (error)
        g_dbus_method_invocation_return_gerror(call->invocation, error);
    else
        vgpu_manager_complete_start_vgpu(host_manager(call->vgpus->host), call->invocation);
    vgpu_call_free(call);
}

/* mdevctl's callout leaves to us whether there is room. What is stored keeps others from it
 * meanwhile. */
static gboolean reserve(Vgpus *vgpus, const Slice *slice, GError **error)
{
    Slice *starting;

    if (!definition_check_start(vgpus->host, vgpus->slices, vgpus->tenants, slice, error))
        return FALSE;
    starting = slice_copy(slice);
    starting->state = SLICE_CHANGING;
    starting->present = TRUE;
    return slices_put(vgpus->slices, starting, error);
}

static void start(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Vgpus *vgpus = data;
    g_autoptr(GVariant) dict = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(Vgpu) vgpu = NULL;
    g_autofree char *uuid = NULL;
    const char *asked;
    const Slice *slice;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s@a{sv})", &asked, &dict);
    slice = dict_read(dict, NULL, 0, &error) ? vgpu_call_slice(vgpus, asked, &error) : NULL;
    if (!slice) {
        g_dbus_method_invocation_return_gerror(invocation, error);
        return;
    }
    vgpu = vgpu_read(host_root(vgpus->host), slice->uuid);
    if (vgpu) {
        vgpu_manager_complete_start_vgpu(host_manager(vgpus->host), invocation);
        return;
    }
    uuid = g_strdup(slice->uuid);
    if (!reserve(vgpus, slice, &error)) {
        g_dbus_method_invocation_return_gerror(invocation, error);
        return;
    }
    g_message("vGPU %s is started by %s", uuid, caller->user);
    mdevctl_run((const char *[]){"start", "--uuid", uuid, NULL}, NULL, started,
                vgpu_call_new(vgpus, invocation, (char *[]){uuid, NULL}));
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
