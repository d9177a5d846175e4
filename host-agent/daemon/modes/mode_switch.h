/* SPDX-License-Identifier: MIT */
/*
 * A switch of a GPU's mode, as an operation: the GPU accepts no new users, its present users are
 * waited for, the mode is stored and applied, or everything is restored.
 */
#ifndef VGPUD_MODES_MODE_SWITCH_H
#define VGPUD_MODES_MODE_SWITCH_H

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/operations/operation.h"
#include "lib/gpus.h"

/**
 * SwitchPools - the pools that GPUs belong to
 * @has: the GPU is in @pool
 * @add_users: who keeps it from getting there
 * @set: a switch ends
 */
typedef struct {
    gboolean (*has)(const char *gpu, const char *pool, void *data);
    void (*add_users)(const char *gpu, const char *pool, GStrvBuilder *users, void *data);
    gboolean (*set)(const char *gpu, const char *pool, GError **error, void *data);
    void *data;
} SwitchPools;

/**
 * ModeSwitches - the world of mode_switch_kinds
 * @ended: a switch has ended, with or without a caller
 */
typedef struct {
    Host *host;
    Operations *operations;
    SwitchPools pools;
    void (*ended)(const Operation *operation, const GError *error, void *data);
    void *data;
} ModeSwitches;

/* One kind, whose only object is the GPU's address. */
extern const OperationKind *const mode_switch_kinds[];

/**
 * SwitchRequest
 * @pool: that the GPU gets with the mode; NULL: it keeps its own
 * @declared: the configuration has this mode already, so it is not stored, nor is what was before
 * if it fails
 * @drain: wait for the GPU's users; else they make it fail
 * @timeout: seconds to wait at most; 0: for ever
 * @dry_run: only report the steps
 * @source: as of OperationRequest
 * @asker: who asked for it on the bus, and is told by name who uses the GPU; NULL: nobody
 */
typedef struct {
    const char *address;
    GpuMode target;
    guint partitions;
    const char *pool;
    gboolean declared;
    gboolean drain;
    guint timeout;
    gboolean dry_run;
    const char *source;
    const char *asker;
} SwitchRequest;

/* The end. @steps: that were, or would be, done. @error: NULL: the GPU has the mode. */
typedef void (*SwitchDone)(const char *const *steps, const GError *error, void *data);

/*
 * The GPU must exist, and have no other switch. @done: never called before this returns. FALSE: not
 * begun.
 */
gboolean mode_switch_start(const ModeSwitches *switches, const SwitchRequest *request,
                           SwitchDone done, void *data, GError **error);

/* The mode that the GPU is being switched to; FALSE: it is not. */
gboolean mode_switch_target(const ModeSwitches *switches, const char *address, GpuMode *target);

/*
 * Ends the waiting for users: everything is restored. FALSE: there is no switch, or it does not
 * wait any more. Its caller is told later.
 */
gboolean mode_switch_cancel(const ModeSwitches *switches, const char *address);

/* The GPU has the mode already, and no switch is left incomplete. */
gboolean mode_switch_is_there(const Gpu *gpu, GpuMode target, guint partitions);

#endif
