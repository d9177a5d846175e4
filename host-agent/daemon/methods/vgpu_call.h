/* SPDX-License-Identifier: MIT */
/* Shared by the methods for vGPUs. */
#ifndef VGPUD_METHODS_VGPU_CALL_H
#define VGPUD_METHODS_VGPU_CALL_H

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/host/authority.h"
#include "host-agent/daemon/methods/vgpus.h"
#include "lib/processes.h"

struct Vgpus {
    Host *host;
    const Lifecycle *life;
    Offers *offers;
    Slices *slices;
    const Tenants *tenants;
    Claims *claims;
    Vms *vms;
    GCancellable *freed;
};

/**
 * VgpuCall - a method that answers later
 * @uuids: of its vGPUs
 */
typedef struct {
    Vgpus *vgpus;
    GDBusMethodInvocation *invocation;
    GStrv uuids;
} VgpuCall;

/* @uuids: copied. */
VgpuCall *vgpu_call_new(Vgpus *vgpus, GDBusMethodInvocation *invocation, const GStrv uuids);

void vgpu_call_free(VgpuCall *call);

/* @request: an operation whose end answers the call; its callbacks have the VgpuCall as data. */
void vgpu_call_ask(VgpuCall *call, const Caller *caller, OperationRequest *request);

/* Sends the caller each step, by the signal Progress. @call: a VgpuCall. */
void vgpu_call_progress(const Operation *operation, void *call);

/* The end of an operation whose method returns nothing. */
void vgpu_call_ended(const GError *error, void *call);

/* It was not begun. @error: taken. */
void vgpu_call_refuse(VgpuCall *call, GError *error);

/* Begins an operation of @kind on one vGPU; its end answers the call. @done: "started", for the log. */
void vgpu_call_begin(Vgpus *vgpus, GDBusMethodInvocation *invocation, const Caller *caller,
                     const char *uuid, const OperationKind *kind, const char *done);

/*
 * Goes on with @administrator if the caller may administer, with @member if the vGPU, or the
 * request, is of a tenant of the caller's; else answers with the refusal. Both have the Vgpus as
 * data.
 */
void vgpu_call_authorize(Vgpus *vgpus, GDBusMethodInvocation *invocation,
                         AuthorizedFunc administrator, AuthorizedFunc member);

/*
 * @user: NULL: the caller sees all; else the slices of tenants that this user belongs to
 * (tenants_shows()).
 */
typedef void (*ListFunc)(Vgpus *vgpus, GDBusMethodInvocation *invocation, const char *user);

/* Calls @list with what the caller may see, or answers with the refusal. */
void vgpu_call_list(Vgpus *vgpus, GDBusMethodInvocation *invocation, ListFunc list);

/*
 * The vGPU of that UUID or name, if no operation works on it. AGENT_ERROR_NOT_FOUND, AGENT_ERROR_IN_USE.
 */
const Slice *vgpu_call_slice(const Vgpus *vgpus, const char *uuid, GError **error);

/* The same for a container's slice, by UUID or name. */
const Slice *vgpu_call_container_slice(const Vgpus *vgpus, const char *name, GError **error);

/*
 * A member of its tenant may request @wanted in place of @before; NULL: it is new
 * (entitlement_check()).
 */
gboolean vgpu_call_is_entitled(const Vgpus *vgpus, const Slice *wanted, const Slice *before,
                               GError **error);

/*
 * The methods, in separate files. Signals of VgpuManager with a Vgpus as data; create, set and
 * remove are for vGPUs and containers' slices.
 */
gboolean vgpu_create_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                            GVariant *request, void *data);
gboolean vgpu_set_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                         const char *uuid, GVariant *changes, void *data);
gboolean vgpu_remove_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                            const char *uuid, GVariant *options, void *data);
gboolean vgpu_check_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                           const char *uuid, const char *parent, const char *type,
                           GVariant *options, void *data);
gboolean vgpu_stop_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                          const char *uuid, GVariant *options, void *data);
gboolean vgpu_start_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                           const char *uuid, GVariant *options, void *data);
gboolean vgpu_names_handle(VgpuManager *interface, GDBusMethodInvocation *invocation, void *data);
gboolean type_list_handle(VgpuManager *interface, GDBusMethodInvocation *invocation, void *data);
gboolean vgpu_vms_handle(VgpuManager *interface, GDBusMethodInvocation *invocation, void *data);
gboolean slice_run_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                          GVariant *request, const char *program, void *data);
gboolean slice_list_handle(VgpuManager *interface, GDBusMethodInvocation *invocation, void *data);
gboolean slice_claim_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                            const char *slice, const char *container, guint pid, void *data);
gboolean slice_release_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                              const char *slice, const char *container, void *data);
gboolean operations_list_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                                void *data);
gboolean operation_cancel_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                                 guint64 id, void *data);
gboolean domain_release_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                               const char *domain, void *data);

#endif
