/* SPDX-License-Identifier: MIT */
/* ClaimSlice, ReleaseSlice: a container begins and ends with a slice. And ListSlices. */
#include "host-agent/daemon/methods/lists.h"
#include "host-agent/daemon/methods/slice_claim.h"
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/daemon/slices/erasure.h"
#include "lib/bus.h"

static void warn(const char *uuid, const GError *error)
{
    g_warning("slice %s, whose container has ended, could not be given back: %s; remove it with "
              "\"vgpuctl slice remove %s\"",
              uuid, error->message, uuid);
}

static void given_back(const GError *error, void *data)
{
    VgpuCall *call = data;

    if (error) {
        warn(call->uuids[0], error);
        slices_settle(call->vgpus->slices, call->uuids[0]);
    }
    vgpu_call_free(call);
}

/* In the database first, so that a vgpud that is killed here goes on with it at its next start. */
static void give_back_vgpu(Vgpus *vgpus, const Slice *slice)
{
    Slice *condemned = slice_copy(slice);
    g_autofree char *uuid = g_strdup(slice->uuid);
    g_autoptr(GError) error = NULL;

    condemned->state = SLICE_REMOVING;
    if (slices_put(vgpus->slices, condemned, &error))
        erasure_run(vgpus->host, vgpus->slices, uuid, given_back,
                    vgpu_call_new(vgpus, NULL, (char *[]){uuid, NULL}));
    else
        warn(uuid, error);
}

void slice_claim_end(Vgpus *vgpus, const char *uuid)
{
    const Slice *slice = slices_find(vgpus->slices, uuid);
    gboolean goes = slice && slice->ephemeral && slice->state == SLICE_READY;

    if (goes && slice_is_vgpu(slice))
        give_back_vgpu(vgpus, slice);
    else if (goes)
        vgpu_call_drop(vgpus, slice);
    claims_forget(vgpus->claims, uuid);
}

static void claim(GDBusMethodInvocation *invocation, const Caller *caller, Vgpus *vgpus,
                  const guint32 *user)
{
    const char *name;
    const char *container;
    guint pid;
    g_autoptr(GError) error = NULL;
    const Slice *slice;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s&su)", &name, &container,
                  &pid);
    slice = vgpu_call_container_slice(vgpus, name, &error);
    if (!slice || !claims_take(vgpus->claims, slice, container, pid, user, &error)) {
        g_dbus_method_invocation_return_gerror(invocation, error);
        return;
    }
    g_message("container %s of %s has slice %s", container, caller->user, slice->uuid);
    g_dbus_method_invocation_return_value(invocation, NULL);
}

static void claim_any(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    claim(invocation, caller, data, NULL);
}

static void claim_own(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    claim(invocation, caller, data, &caller->uid);
}

gboolean slice_claim_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                            const char *slice, const char *container, guint pid, void *data)
{
    (void)interface;
    (void)slice;
    (void)container;
    (void)pid;
    vgpu_call_authorize(data, invocation, claim_any, claim_own);
    return TRUE;
}

/* A slice that is gone, or another's by now, is released. */
static void release(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Vgpus *vgpus = data;
    const char *name;
    const char *container;
    const Slice *slice;

    (void)caller;
    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s&s)", &name, &container);
    slice = slices_find_called(vgpus->slices, name);
    if (slice && claims_is_of(vgpus->claims, slice->uuid, container)) {
        g_autofree char *uuid = g_strdup(slice->uuid);

        slice_claim_end(vgpus, uuid);
    }
    g_dbus_method_invocation_return_value(invocation, NULL);
}

gboolean slice_release_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                              const char *slice, const char *container, void *data)
{
    (void)interface;
    (void)slice;
    (void)container;
    vgpu_call_authorize(data, invocation, release, release);
    return TRUE;
}

static void list(Vgpus *vgpus, GDBusMethodInvocation *invocation, const char *user)
{
    vgpu_manager_complete_list_slices(host_manager(vgpus->host), invocation,
                                      list_container_slices(host_counters(vgpus->host),
                                                            vgpus->slices, vgpus->tenants,
                                                            vgpus->claims, user));
}

gboolean slice_list_handle(VgpuManager *interface, GDBusMethodInvocation *invocation, void *data)
{
    (void)interface;
    vgpu_call_list(data, invocation, list);
    return TRUE;
}
