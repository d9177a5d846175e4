/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/daemon/slices/placing.h"
#include "lib/bus.h"
#include "lib/vgpu.h"

/* A VMM has read the display's configuration when it opened the vGPU. */
static gboolean check_display(const Vgpus *vgpus, const Slice *slice, const Change *asked,
                              GError **error)
{
    g_autoptr(Vgpu) vgpu = NULL;

    if (!asked->display_given)
        return TRUE;
    if (!slice_is_vgpu(slice)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "slice %s can't have a display: Display is for vGPUs", slice->uuid);
        return FALSE;
    }
    vgpu = vgpu_read(host_root(vgpus->host), slice->uuid);
    if (!vgpu || g_str_equal(vgpu->device, "closed") || vgpu->display == asked->display)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "vGPU %s is open in a VM, so its display can't change; shut the VM down, or detach "
                "the vGPU from it, first",
                slice->uuid);
    return FALSE;
}

/*
 * The slice as it would be; NULL if that is not possible, or a member of its tenant may not request
 * it.
 */
static Slice *find_change(const Vgpus *vgpus, const Slice *slice, const Change *asked,
                          gboolean administrator, GError **error)
{
    g_autoptr(Slice) wanted = NULL;

    if (asked->tenant && !administrator) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED,
                    "only an administrator can give %s to another tenant", slice->uuid);
        return NULL;
    }
    if (!check_display(vgpus, slice, asked, error))
        return NULL;
    wanted = placing_change(vgpus->host, vgpus->slices, vgpus->tenants, slice, asked, error);
    if (wanted && !administrator && !vgpu_call_is_entitled(vgpus, wanted, slice, error))
        return NULL;
    return g_steal_pointer(&wanted);
}

static void begin(Vgpus *vgpus, GDBusMethodInvocation *invocation, const Caller *caller,
                  const Slice *wanted)
{
    VgpuCall *call = vgpu_call_new(vgpus, invocation, NULL);
    OperationRequest request = {.done = vgpu_call_ended};
    GError *error = NULL;

    vgpu_call_ask(call, caller, &request);
    if (!alteration_start(vgpus->life, wanted, &request, &error))
        vgpu_call_refuse(call, error);
}

static const Slice *find_slice(const Vgpus *vgpus, GDBusMethodInvocation *invocation,
                               const char *name, GError **error)
{
    return g_str_equal(g_dbus_method_invocation_get_method_name(invocation), "SetSlice")
               ? vgpu_call_container_slice(vgpus, name, error)
               : vgpu_call_slice(vgpus, name, error);
}

static void change(GDBusMethodInvocation *invocation, const Caller *caller, Vgpus *vgpus,
                   gboolean administrator)
{
    const char *uuid;
    g_autoptr(GVariant) dict = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(Change) asked = NULL;
    g_autoptr(Slice) wanted = NULL;
    const Slice *slice;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s@a{sv})", &uuid, &dict);
    asked = change_parse(dict, &error);
    slice = asked ? find_slice(vgpus, invocation, uuid, &error) : NULL;
    if (slice)
        wanted = find_change(vgpus, slice, asked, administrator, &error);
    if (!wanted)
        g_dbus_method_invocation_return_gerror(invocation, error);
    else if (asked->dry_run)
        g_dbus_method_invocation_return_value(invocation, NULL);
    else
        begin(vgpus, invocation, caller, wanted);
}

static void change_any(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    change(invocation, caller, data, TRUE);
}

static void change_own(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    change(invocation, caller, data, FALSE);
}

gboolean vgpu_set_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                         const char *uuid, GVariant *changes, void *data)
{
    (void)interface;
    (void)uuid;
    (void)changes;
    vgpu_call_authorize(data, invocation, change_any, change_own);
    return TRUE;
}
