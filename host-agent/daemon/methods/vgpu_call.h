/* SPDX-License-Identifier: MIT */
/*
 * The manager's methods for vGPUs, slices and operations: who may call them, and how they are
 * answered.
 */
#ifndef VGPUD_METHODS_VGPU_CALL_H
#define VGPUD_METHODS_VGPU_CALL_H

#include "lib/processes.h"
#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/host/authority.h"
#include "host-agent/daemon/operations/operation.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/slices/tenants.h"

/*
 * The life of a slice, as operations: made, started, changed, removed. Each kind has its own file,
 * with its steps and their rollback.
 */

/* The steps' environment (the operations' world), and the functions that begin operations. */
typedef struct {
    Host *host;
    Slices *slices;
    Claims *claims;
    Operations *operations;
} Lifecycle;

/* Of one slice: stopped in the kernel, undefined, forgotten. */
extern const OperationKind removal_kind;

/* Of vGPUs: all that are requested, or none. Begun by creation_start(). */
extern const OperationKind creation_kind;

/* Of one slice: in the database, the driver and mdevctl's configuration. By alteration_start(). */
extern const OperationKind alteration_kind;

/* Of one vGPU that is defined. */
extern const OperationKind startup_kind;

/* The opposite: its definition stays. */
extern const OperationKind shutdown_kind;

/* All of them; their world is a Lifecycle. */
extern const OperationKind *const lifecycle_kinds[];

/*
 * @list: of Slice, all vGPUs and reserved, taken. @window: bytes; 0: the types'. @request: its
 * kind, objects, details and kept data are filled in here.
 */
gboolean creation_start(const Lifecycle *life, GPtrArray *list, guint64 window,
                        OperationRequest *request, GError **error);

/* @wanted: the slice as it will be. */
gboolean alteration_start(const Lifecycle *life, const Slice *wanted, OperationRequest *request,
                          GError **error);

/*
 * For steps: ends the vGPU in the kernel, if it exists, and with that the step. VFIO's group is
 * held meanwhile, so that no VM opens it. AGENT_ERROR_IN_USE: a VM has it open.
 */
void removal_stop(Operation *operation, const char *uuid);

/* For steps: removes its definition, if there is one below its own GPU, and ends the step. */
void removal_undefine(Operation *operation, const char *uuid);

/*
 * The manager's methods for vGPUs and containers' slices: list, create, set, remove, check, claim.
 */

typedef struct Vgpus Vgpus;

/* All of them live longer. */
Vgpus *vgpus_new(const Lifecycle *life, Offers *offers, const Tenants *tenants);

void vgpus_free(Vgpus *vgpus);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Vgpus, vgpus_free)

/* Shared by the methods for vGPUs. */

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

/* The end of an operation whose method returns nothing. */
void vgpu_call_ended(const GError *error, void *call);

/* It was not begun. @error: taken. */
void vgpu_call_refuse(VgpuCall *call, GError *error);

/* Begins an operation of @kind on one vGPU; its end answers the call. @done: "started", for the
 * log. */
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
 * The vGPU of that UUID or name, if no operation works on it. AGENT_ERROR_NOT_FOUND,
 * AGENT_ERROR_IN_USE.
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
gboolean domain_release_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                               const char *domain, void *data);

#endif
