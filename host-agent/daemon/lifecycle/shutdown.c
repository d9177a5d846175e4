/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/lifecycle/lifecycle.h"

static void run_stop(Operation *operation, guint item)
{
    (void)item;
    removal_stop(operation, operation_object(operation, 0));
}

static void plan(Operation *operation)
{
    static const OperationStep stop = {"stop", run_stop, NULL, FALSE};

    operation_add_step(operation, &stop, 0);
}

static void ended(Operation *operation, const GError *error)
{
    const Lifecycle *life = operation_world(operation);
    const char *uuid = operation_object(operation, 0);
    const Slice *slice;

    slices_settle(life->slices, uuid);
    slice = slices_find(life->slices, uuid);
    if (!error && slice)
        host_event(life->host, "vgpu-changed", slice->gpu, uuid, "vGPU %s was stopped", uuid);
}

/* An interrupted stop is not continued: nobody waits for it any more. */
const OperationKind shutdown_kind = {.name = "stop",
                                     .doing = "being stopped",
                                     .what = "the stop",
                                     .replay = OPERATION_UNDO,
                                     .step_time = 60,
                                     .plan = plan,
                                     .ended = ended};
