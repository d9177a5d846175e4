/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/methods/lists.h"
#include "host-agent/daemon/methods/vgpu_call.h"
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

/* Nothing in @slices exceeds what a member of a tenant may request. */
static gboolean are_entitled(const Vgpus *vgpus, const GPtrArray *slices, GError **error)
{
    for (guint i = 0; i < slices->len; i++) {
        if (!vgpu_call_is_entitled(vgpus, g_ptr_array_index(slices, i), NULL, error))
            return FALSE;
    }
    return TRUE;
}

/* The slices, on their GPUs. */
static GPtrArray *place(Vgpus *vgpus, const Request *request, gboolean administrator,
                        GError **error)
{
    g_autoptr(GPtrArray) slices =
        placing_find(vgpus->host, vgpus->offers, vgpus->slices, vgpus->tenants, request, error);

    if (slices && !administrator && !are_entitled(vgpus, slices, error))
        return NULL;
    return g_steal_pointer(&slices);
}

/* One that is no vGPU takes one step: it exists as soon as it is stored. */
static void store_slice(Vgpus *vgpus, GDBusMethodInvocation *invocation, const Caller *caller,
                        const GPtrArray *slices)
{
    const Slice *slice = g_ptr_array_index(slices, 0);
    g_autoptr(GError) error = NULL;

    if (!slices_put_all(vgpus->slices, slices, &error)) {
        g_dbus_method_invocation_return_gerror(invocation, error);
        return;
    }
    host_event(vgpus->host, "slice-created", slice->gpu, slice->uuid,
               "slice %s of GPU %s was made for containers, door %s, by %s", slice->uuid,
               slice->gpu, slice_transport_name(slice->transport), caller->user);
    answer(vgpus, invocation, list_slices(slices));
}

/* @slices: taken. */
static void begin(Vgpus *vgpus, GDBusMethodInvocation *invocation, const Caller *caller,
                  const Request *request, GPtrArray *slices)
{
    VgpuCall *call = vgpu_call_new(vgpus, invocation, request->uuids);
    OperationRequest operation = {.done = created};
    GError *error = NULL;

    g_message("%u vGPUs of type %s were requested by %s", request->count, request->type,
              caller->user);
    vgpu_call_ask(call, caller, &operation);
    if (!creation_start(vgpus->life, slices, request->window, &operation, &error))
        vgpu_call_refuse(call, error);
}

static void create(GDBusMethodInvocation *invocation, const Caller *caller, Vgpus *vgpus,
                   gboolean administrator)
{
    g_autoptr(GVariant) dict = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(Request) request = NULL;
    g_autoptr(GPtrArray) slices = NULL;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(@a{sv})", &dict);
    request =
        is_for_slice(invocation) ? request_parse_slice(dict, &error) : request_parse(dict, &error);
    slices = request ? place(vgpus, request, administrator, &error) : NULL;
    if (!slices)
        g_dbus_method_invocation_return_gerror(invocation, error);
    else if (request->dry_run)
        answer(vgpus, invocation, list_slices(slices));
    else if (slice_is_vgpu(g_ptr_array_index(slices, 0)))
        begin(vgpus, invocation, caller, request, g_steal_pointer(&slices));
    else
        store_slice(vgpus, invocation, caller, slices);
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
