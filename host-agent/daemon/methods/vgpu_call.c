/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/methods/vgpu_call.h"

#include "host-agent/model/placement.h"
#include "lib/bus.h"

/**
 * Ask - the call to resume when polkit has answered
 */
typedef struct {
    Vgpus *vgpus;
    AuthorizedFunc administrator;
    AuthorizedFunc member;
} Ask;

VgpuCall *vgpu_call_new(Vgpus *vgpus, GDBusMethodInvocation *invocation, const GStrv uuids)
{
    VgpuCall *call = g_new0(VgpuCall, 1);

    call->vgpus = vgpus;
    call->invocation = invocation;
    call->uuids = g_strdupv(uuids);
    return call;
}

void vgpu_call_free(VgpuCall *call)
{
    g_strfreev(call->uuids);
    g_free(call);
}

void vgpu_call_ask(VgpuCall *call, const Caller *caller, OperationRequest *request)
{
    request->caller = caller->user;
    request->progress = vgpu_call_progress;
    request->data = call;
}

void vgpu_call_ended(const GError *error, void *data)
{
    VgpuCall *call = data;

    if (error)
        g_dbus_method_invocation_return_gerror(call->invocation, error);
    else
        g_dbus_method_invocation_return_value(call->invocation, NULL);
    vgpu_call_free(call);
}

void vgpu_call_refuse(VgpuCall *call, GError *error)
{
    g_dbus_method_invocation_take_error(call->invocation, error);
    vgpu_call_free(call);
}

void vgpu_call_begin(Vgpus *vgpus, GDBusMethodInvocation *invocation, const Caller *caller,
                     const char *uuid, const OperationKind *kind, const char *done)
{
    VgpuCall *call = vgpu_call_new(vgpus, invocation, (char *[]){(char *)uuid, NULL});
    OperationRequest request = {.kind = kind,
                                .objects = (const char *[]){call->uuids[0], NULL},
                                .done = vgpu_call_ended};
    GError *error = NULL;

    g_message("vGPU %s is %s by %s", uuid, done, caller->user);
    vgpu_call_ask(call, caller, &request);
    if (!operations_start(vgpus->life->operations, &request, &error))
        vgpu_call_refuse(call, error);
}

/* The tenant of a call: of the request, or of the existing vGPU. */
static char *tenant_of(const Vgpus *vgpus, GDBusMethodInvocation *invocation)
{
    GVariant *parameters = g_dbus_method_invocation_get_parameters(invocation);
    g_autoptr(GVariant) first = g_variant_get_child_value(parameters, 0);
    const Slice *slice;
    char *tenant = NULL;

    if (g_variant_is_of_type(first, G_VARIANT_TYPE_VARDICT)) {
        g_variant_lookup(first, "Tenant", "s", &tenant);
        return tenant;
    }
    slice = slices_find_called(vgpus->slices, g_variant_get_string(first, NULL));
    return slice ? g_strdup(slice->tenant) : NULL;
}

static gboolean is_own(const Vgpus *vgpus, GDBusMethodInvocation *invocation, const char *user)
{
    g_autofree char *tenant = tenant_of(vgpus, invocation);

    return tenant && tenants_has_user(vgpus->tenants, tenant, user);
}

static void is_administrator(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Ask *ask = data;

    ask->administrator(invocation, caller, ask->vgpus);
}

static void is_no_administrator(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Ask *ask = data;

    if (is_own(ask->vgpus, invocation, caller->user))
        authority_ask(invocation, ACTION_USE_OWN_TENANT, ask->member, ask->vgpus);
    else
        authority_ask(invocation, ACTION_ADMINISTER, ask->administrator, ask->vgpus);
}

void vgpu_call_authorize(Vgpus *vgpus, GDBusMethodInvocation *invocation,
                         AuthorizedFunc administrator, AuthorizedFunc member)
{
    Ask *ask = g_new0(Ask, 1);

    ask->vgpus = vgpus;
    ask->administrator = administrator;
    ask->member = member;
    /* It is needed until the call is answered. */
    g_object_set_data_full(G_OBJECT(invocation), "ask", ask, g_free);
    authority_ask_or(invocation, ACTION_ADMINISTER, is_administrator, is_no_administrator, ask);
}

/**
 * Listing - the list to return when polkit has answered
 */
typedef struct {
    Vgpus *vgpus;
    ListFunc list;
} Listing;

static void list_all(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Listing *listing = data;

    (void)caller;
    listing->list(listing->vgpus, invocation, NULL);
}

static void list_own(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Listing *listing = data;

    if (tenants_any_has_user(listing->vgpus->tenants, caller->user))
        listing->list(listing->vgpus, invocation, caller->user);
    else
        authority_ask(invocation, ACTION_SEE, list_all, data);
}

void vgpu_call_list(Vgpus *vgpus, GDBusMethodInvocation *invocation, ListFunc list)
{
    Listing *listing = g_new0(Listing, 1);

    listing->vgpus = vgpus;
    listing->list = list;
    g_object_set_data_full(G_OBJECT(invocation), "listing", listing, g_free);
    authority_ask_or(invocation, ACTION_SEE, list_all, list_own, listing);
}

/* @slice, if no operation works on it. */
static const Slice *if_free(const Vgpus *vgpus, const Slice *slice, GError **error)
{
    const char *doing = operations_doing(vgpus->life->operations, slice->uuid);

    if (!doing)
        return slice;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "%s %s is just %s; try again when that is done",
                slice_is_vgpu(slice) ? "vGPU" : "slice", slice->uuid, doing);
    return NULL;
}

const Slice *vgpu_call_container_slice(const Vgpus *vgpus, const char *name, GError **error)
{
    const Slice *slice = slices_find_called(vgpus->slices, name);

    if (slice && slice_is_for_container(slice))
        return if_free(vgpus, slice, error);
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND,
                "there is no slice %s; \"vgpuctl slice list\" lists the existing ones", name);
    return NULL;
}

gboolean vgpu_call_is_entitled(const Vgpus *vgpus, const Slice *wanted, const Slice *before,
                               GError **error)
{
    const Gpu *gpu = host_gpu(vgpus->host, wanted->gpu);
    struct vgpu_type_desc desc;
    Offer offer;
    gboolean known =
        gpu && (*wanted->type ? offers_find(vgpus->offers, gpu, wanted->type, &offer)
                              : offers_of_size(vgpus->offers, gpu, wanted->vram, &desc, &offer));

    return entitlement_check(wanted, before, known ? &offer : NULL, error);
}

const Slice *vgpu_call_slice(const Vgpus *vgpus, const char *uuid, GError **error)
{
    const Slice *slice = slices_find_called(vgpus->slices, uuid);

    if (!slice || !slice_is_vgpu(slice)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND,
                    "there is no vGPU %s; \"vgpuctl vgpu list\" lists the existing ones", uuid);
        return NULL;
    }
    return if_free(vgpus, slice, error);
}
