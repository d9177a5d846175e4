/* SPDX-License-Identifier: MIT */
/* ClaimSlice, ReleaseSlice: a container begins and ends to use a slice. And ListSlices. */
#include "host-agent/daemon/host/audit_log.h"
#include "host-agent/daemon/methods/lists.h"
#include "host-agent/daemon/methods/slice_claim.h"
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/daemon/slices/placing.h"
#include "lib/audit.h"
#include "lib/bus.h"

static void given_back(const GError *error, void *data)
{
    g_autofree char *uuid = data;

    if (error)
        g_warning("cannot remove slice %s, whose container has ended: %s; remove it with \"vgpuctl "
                  "slice remove %s\"",
                  uuid, error->message, uuid);
}

/* After the operation on it, if there is one. */
static void give_back(const Vgpus *vgpus, const char *uuid, const char *source)
{
    const OperationRequest request = {.kind = &removal_kind,
                                      .objects = (const char *[]){uuid, NULL},
                                      .source = source,
                                      .waits = TRUE,
                                      .background = TRUE,
                                      .done = given_back,
                                      .data = g_strdup(uuid)};
    g_autoptr(GError) error = NULL;

    if (!operations_start(vgpus->life->operations, &request, &error))
        given_back(error, request.data);
}

void slice_claim_end(Vgpus *vgpus, const char *uuid)
{
    const Slice *slice = slices_find(vgpus->slices, uuid);
    guint32 user;
    const char *source =
        claims_program_user(vgpus->claims, uuid, &user) ? AUDIT_BY_SYSTEMD : AUDIT_BY_CONTAINER;
    g_autofree char *before = audit_state_of(AUDIT_SLICE, uuid);

    if (slice && slice->ephemeral && !slice->leaving)
        give_back(vgpus, uuid, source);
    claims_forget(vgpus->claims, uuid);
    /* If it was removed, the operation is in the audit. */
    if (slices_find(vgpus->slices, uuid))
        audit_write_change(source, AUDIT_DO_RELEASE, AUDIT_SLICE, uuid, before, NULL);
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
    if (!slice ||
        !placing_admit(vgpus->host, vgpus->slices, vgpus->tenants, ADMISSION_CLAIM, slice, slice,
                       &error) ||
        !claims_take(vgpus->claims, slice, container, pid, user, &error)) {
        g_dbus_method_invocation_return_gerror(invocation, error);
        return;
    }
    g_message("container %s of %s uses slice %s", container, caller->user, slice->uuid);
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

/* A slice that is gone, or used by another by now, is already released. */
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
