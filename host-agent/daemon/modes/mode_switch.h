/* SPDX-License-Identifier: MIT */
/*
 * One switch of one GPU's mode, from the request to its end: the GPU accepts no new users, its
 * present users are waited for, the mode is stored and applied, or everything is restored. Each
 * phase is stored in the database first.
 */
#ifndef VGPUD_MODES_MODE_SWITCH_H
#define VGPUD_MODES_MODE_SWITCH_H

#include "host-agent/daemon/host/host.h"
#include "lib/gpus.h"

typedef struct ModeSwitch ModeSwitch;

/**
 * SwitchRequest
 * @drain: wait for the GPU's users; else they make it fail
 * @timeout: seconds to wait at most; 0: for ever
 * @dry_run: only report the steps
 * @resumed: it was interrupted by the end of vgpud: finish it if the GPU is not in use, else undo
 * it
 * @origin: with @resumed: the mode before it
 */
typedef struct {
    const char *address;
    GpuMode target;
    guint partitions;
    gboolean drain;
    guint timeout;
    gboolean dry_run;
    gboolean resumed;
    GpuMode origin;
} SwitchRequest;

/*
 * The end. @steps: that were, or would be, done. @error: NULL: the GPU has the mode. The switch is
 * freed when it returns.
 */
typedef void (*SwitchDone)(ModeSwitch *change, const char *const *steps, const GError *error,
                           void *data);

/* The GPU must exist, and have no other switch. @done: never called before this returns. */
ModeSwitch *mode_switch_start(Host *host, const SwitchRequest *request, SwitchDone done,
                              void *data);

/*
 * vgpud ends: @done is called with an error. A thread finishes its current step; the next start
 * reads the progress from the database.
 */
void mode_switch_abandon(ModeSwitch *change);

/*
 * Ends the waiting for users: everything is restored. FALSE: it does not wait any more, but
 * switches. @done is called later.
 */
gboolean mode_switch_cancel(ModeSwitch *change);

/* The GPU has the mode already, and no switch is left incomplete. */
gboolean mode_switch_is_there(const Gpu *gpu, GpuMode target, guint partitions);

const char *mode_switch_gpu(const ModeSwitch *change);
GpuMode mode_switch_target(const ModeSwitch *change);
/* It only reports the steps. */
gboolean mode_switch_is_dry(const ModeSwitch *change);

/*
 * Existing vGPUs of the GPU need not be started again: from now on a stop is intended. One that
 * could not be started stays recorded, and is tried again when the GPU is shared the next time.
 */
void mode_switch_forget_started(const Host *host, const char *address);

#endif
