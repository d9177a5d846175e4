/* SPDX-License-Identifier: MIT */
/*
 * One switch of one GPU's mode, from the request to its end: nobody new comes to the GPU, who is in
 * the way is waited for, the mode is stored and made, or all is as before. Each phase is in the
 * database first.
 */
#ifndef VGPUD_MODES_MODE_SWITCH_H
#define VGPUD_MODES_MODE_SWITCH_H

#include "host-agent/daemon/host/host.h"
#include "lib/gpus.h"

typedef struct ModeSwitch ModeSwitch;

/**
 * SwitchRequest
 * @drain: wait for who is in the way; else they make it fail
 * @timeout: seconds to wait at most; 0: for ever
 * @dry_run: only say what would be done
 * @resumed: it had begun when vgpud ended: finish it where nobody is in the way, else undo it
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
 * The end. @steps: what was, or would be, done. @error: NULL: the GPU has the mode. The switch is
 * freed when it returns.
 */
typedef void (*SwitchDone)(ModeSwitch *change, const char *const *steps, const GError *error,
                           void *data);

/* The GPU must be there, and have no other switch. @done: never called before this returns. */
ModeSwitch *mode_switch_start(Host *host, const SwitchRequest *request, SwitchDone done,
                              void *data);

/*
 * vgpud ends: @done is called with an error. What a thread is doing goes on, and how far it has
 * come is found out at the next start, by the database.
 */
void mode_switch_abandon(ModeSwitch *change);

/*
 * Ends the waiting for who is in the way: all is as before. FALSE: it does not wait any more, but
 * switches.
 * @done is called later.
 */
gboolean mode_switch_cancel(ModeSwitch *change);

/* The GPU has the mode already, and nothing of a switch is left half done. */
gboolean mode_switch_is_there(const Gpu *gpu, GpuMode target, guint partitions);

const char *mode_switch_gpu(const ModeSwitch *change);
GpuMode mode_switch_target(const ModeSwitch *change);
/* It only says what would be done. */
gboolean mode_switch_is_dry(const ModeSwitch *change);

/*
 * vGPUs of the GPU that are there need not be started again: whoever stops one from now on means
 * it. One that could not be started stays noted, and is tried again when the GPU is shared the next
 * time.
 */
void mode_switch_forget_started(const Host *host, const char *address);

#endif
