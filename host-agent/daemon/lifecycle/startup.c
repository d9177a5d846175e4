/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/lifecycle/lifecycle.h"
#include "host-agent/daemon/slices/mdevctl.h"

/* mdevctl's callout leaves the check of room to us: the ledger's entry reserves it meanwhile. */
static void run_reserve(Operation *operation, guint item)
{
    const Lifecycle *life = operation_world(operation);

    (void)item;
    slices_set_reserved(life->slices, operation_object(operation, 0));
    operation_step_done(operation, NULL);
}

/*
 * Has no rollback: if it fails because the vGPU has just been started by another, that vGPU stays.
 */
static void run_start(Operation *operation, guint item)
{
    const char *words[] = {"start", "--uuid", operation_object(operation, 0), NULL};

    (void)item;
    mdevctl_run(words, NULL, operation_cancellable(operation), operation_step_ended, operation);
}

static void plan(Operation *operation)
{
    static const OperationStep reserve = {"reserve", run_reserve, NULL, FALSE};
    static const OperationStep start = {"start", run_start, NULL, FALSE};

    operation_add_step(operation, &reserve, 0);
    operation_add_step(operation, &start, 0);
}

static void ended(Operation *operation, const GError *error)
{
    const Lifecycle *life = operation_world(operation);

    (void)error;
    slices_settle(life->slices, operation_object(operation, 0));
}

const OperationKind startup_kind = {.name = "start",
                                    .doing = "being started",
                                    .what = "the start",
                                    .replay = OPERATION_UNDO,
                                    .step_time = 60,
                                    .plan = plan,
                                    .ended = ended};

const OperationKind *const lifecycle_kinds[] = {&creation_kind,   &startup_kind, &shutdown_kind,
                                                &alteration_kind, &removal_kind, NULL};
