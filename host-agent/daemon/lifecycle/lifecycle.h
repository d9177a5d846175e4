/* SPDX-License-Identifier: MIT */
/*
 * The life of a slice, as operations: made, started, changed, removed. Each kind has its own file,
 * with its steps and their rollback.
 */
#ifndef VGPUD_LIFECYCLE_H
#define VGPUD_LIFECYCLE_H

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/operations/operation.h"
#include "host-agent/daemon/slices/slices.h"

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

#endif
