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
#include "host-agent/daemon/host/meter_link.h"
#include "host-agent/daemon/operations/operation.h"
#include "host-agent/daemon/slices/evictions.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/slices/tenants.h"

/*
 * The life of a slice, as operations: made, started, changed, removed. Each kind is in the file of
 * its method, with its steps and their rollback.
 */

/* The steps' environment (the operations' world), and the functions that begin operations. */
typedef struct {
    Host *host;
    Slices *slices;
    Claims *claims;
    Operations *operations;
    const MeterLink *meter;
} Lifecycle;

/* Of one slice: stopped in the kernel, undefined, forgotten. */
extern const OperationKind removal_kind;

/* Of vGPUs: all that are requested, or none. */
extern const OperationKind creation_kind;

/* Of one slice: in the database, the driver and mdevctl's configuration. */
extern const OperationKind alteration_kind;

/* Of one vGPU that is defined. */
extern const OperationKind startup_kind;

/* The opposite: its definition stays. */
extern const OperationKind shutdown_kind;

/* Of one slice: its programs, and what is promised to it. */
extern const OperationKind suspension_kind, resumption_kind, repeated_resumption_kind;

/* The end of an operation on one slice. @done: what it was, as "changed", for the event. */
void lifecycle_settle(const Lifecycle *life, const char *uuid, const GError *error,
                      const char *done);

/* All of them; their world is a Lifecycle. */
extern const OperationKind *const lifecycle_kinds[];

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
Vgpus *vgpus_new(const Lifecycle *life, Offers *offers, const Tenants *tenants, Returns *returns);

void vgpus_free(Vgpus *vgpus);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Vgpus, vgpus_free)

/* Shared by the methods for vGPUs. */

struct Vgpus {
    Host *host;
    const Lifecycle *life;
    Offers *offers;
    Slices *slices;
    const Tenants *tenants;
    Returns *returns;
    Claims *claims;
    Vms *vms;
    GCancellable *freed;
    GHashTable *unreturned; /* UUIDs of ephemeral slices whose removal has failed */
    guint sweep;            /* tries again */
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
 * @user: NULL: the caller sees all; else the slices of tenants that this user belongs to
 * (tenants_shows()).
 */
typedef void ListFunc(Vgpus *vgpus, GDBusMethodInvocation *invocation, const char *user);

/*
 * The slice that the caller calls so (tenants_find_slice()), if no operation works on it.
 * AGENT_ERROR_NOT_FOUND, AGENT_ERROR_IN_USE.
 */
const Slice *vgpu_call_slice(const Vgpus *vgpus, const char *name, const Caller *caller,
                             GError **error);

/* The same for a container's slice. */
const Slice *vgpu_call_container_slice(const Vgpus *vgpus, const char *name, const Caller *caller,
                                       GError **error);

/* The same for a vGPU. */
const Slice *vgpu_call_vgpu(const Vgpus *vgpus, const char *name, const Caller *caller,
                            GError **error);

/*
 * @user is a member of its tenant and may request @wanted in place of @before; NULL: it is new
 * (entitlement_check()).
 */
gboolean vgpu_call_is_entitled(const Vgpus *vgpus, const char *user, const Slice *wanted,
                               const Slice *before, GError **error);

/*
 * The methods, with a Vgpus as data. _own: for a member of the tenant, who may do less than an
 * administrator.
 */
AuthorizedFunc vgpu_create, vgpu_create_own;
AuthorizedFunc vgpu_set, vgpu_set_own;
AuthorizedFunc vgpu_start, vgpu_stop, vgpu_remove;
AuthorizedFunc slice_run, slice_run_own;
/* As those of ProgramsForRoom; @data: Vgpus. */
gboolean slice_suspend_for_room(const Slice *slice, void *data, GError **error);
gboolean slice_resume_with_room(const Slice *slice, void *data, GError **error);
gboolean slice_end_for_room(const Slice *slice, const ProgramsEnded *done, void *data,
                            GError **error);

AuthorizedFunc slice_suspend, slice_resume, slice_warm;
AuthorizedFunc slice_claim, slice_claim_own, slice_release, slice_release_own;
AuthorizedFunc domain_release;
AuthorizedFunc owner_release, owner_list;
ListFunc slices_find_asked, type_list;

#endif
