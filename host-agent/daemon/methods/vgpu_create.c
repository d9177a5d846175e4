/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/methods/lists.h"
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/daemon/slices/creation.h"
#include "host-agent/daemon/slices/placing.h"
#include "lib/bus.h"

static gboolean is_for_slice(GDBusMethodInvocation *invocation)
{
    return g_str_equal(g_dbus_method_invocation_get_method_name(invocation), "CreateSlice");
}

/* @list: floating, of vGPUs or of one slice. */
static void answer(const Vgpus *vgpus, GDBusMethodInvocation *invocation, GVariant *list)
{
    g_autoptr(GVariant) made = g_variant_ref_sink(list);
    g_autoptr(GVariant) first = NULL;

    if (!is_for_slice(invocation)) {
        vgpu_manager_complete_create_vgpus(host_manager(vgpus->host), invocation, made);
        return;
    }
    first = g_variant_get_child_value(made, 0);
    vgpu_manager_complete_create_slice(host_manager(vgpus->host), invocation, first);
}

static void created(const GError *error, void *data)
{
    VgpuCall *call = data;
    Vgpus *vgpus = call->vgpus;

    if (error)
        g_dbus_method_invocation_return_gerror(call->invocation, error);
    else
        answer(vgpus, call->invocation,
               list_vgpus_called(host_counters(vgpus->host), vgpus->slices, call->uuids));
    vgpu_call_free(call);
}

/* Nothing in @slices is more than a member of a tenant may ask for. */
static gboolean are_entitled(const Vgpus *vgpus, const GPtrArray *slices, GError **error)
{
    for (guint i = 0; i < slices->len; i++) {
        if (!vgpu_call_is_entitled(vgpus, g_ptr_array_index(slices, i), NULL, error))
            return FALSE;
    }
    return TRUE;
}

/* Puts the slices where they shall be and stores that, so that the next request sees it. */
static GPtrArray *reserve(Vgpus *vgpus, const Request *request, gboolean administrator,
                          GError **error)
{
    g_autoptr(GPtrArray) slices = placing_find(vgpus->host, vgpus->offers, vgpus->slices,
                                               vgpus->tenants, request, error);

    if (slices && !administrator && !are_entitled(vgpus, slices, error))
        return NULL;
    if (!slices || request->dry_run)
        return g_steal_pointer(&slices);
    return slices_put_all(vgpus->slices, slices, error) ? g_steal_pointer(&slices) : NULL;
}

/* Of a slice that is no vGPU: it is there as soon as it is stored. */
static void tell_made(const Vgpus *vgpus, const Slice *slice, const Caller *caller)
{
    host_event(vgpus->host, "slice-created", slice->gpu, slice->uuid,
               "slice %s of GPU %s was made for containers, door %s, by %s", slice->uuid, slice->gpu,
               slice_transport_name(slice->transport), caller->user);
}

static void create(GDBusMethodInvocation *invocation, const Caller *caller, Vgpus *vgpus,
                   gboolean administrator)
{
    g_autoptr(GVariant) dict = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(Request) request = NULL;
    g_autoptr(GPtrArray) slices = NULL;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(@a{sv})", &dict);
    request = is_for_slice(invocation) ? request_parse_slice(dict, &error)
                                       : request_parse(dict, &error);
    slices = request ? reserve(vgpus, request, administrator, &error) : NULL;
    if (!slices) {
        g_dbus_method_invocation_return_gerror(invocation, error);
        return;
    }
    if (request->dry_run) {
        answer(vgpus, invocation, list_slices(slices));
        return;
    }
    if (!slice_is_vgpu(g_ptr_array_index(slices, 0))) {
        tell_made(vgpus, g_ptr_array_index(slices, 0), caller);
        answer(vgpus, invocation, list_slices(slices));
        return;
    }
    g_message("%u vGPUs of type %s were asked for by %s", request->count, request->type,
              caller->user);
    creation_run(vgpus->host, vgpus->slices, g_steal_pointer(&slices), request->window, created,
                 vgpu_call_new(vgpus, invocation, request->uuids));
}

static void create_any(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    create(invocation, caller, data, TRUE);
}

static void create_own(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    create(invocation, caller, data, FALSE);
}

gboolean vgpu_create_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                            GVariant *request, void *data)
{
    (void)interface;
    (void)request;
    vgpu_call_authorize(data, invocation, create_any, create_own);
    return TRUE;
}
