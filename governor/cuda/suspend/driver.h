/* SPDX-License-Identifier: MIT */
/*
 * The driver's checkpoint calls (CUDA 12.8 and later, Linux), with a time limit: the driver has one
 * for locking only. Each is about one process of the host.
 */
#ifndef GOVERNOR_CUDA_SUSPEND_DRIVER_H
#define GOVERNOR_CUDA_SUSPEND_DRIVER_H

#include <stdbool.h>

/* As the driver numbers them. */
enum state {
    STATE_RUNNING,
    STATE_LOCKED,
    STATE_CHECKPOINTED,
    STATE_FAILED,
    STATE_UNKNOWN,
};

enum step { STEP_LOCK, STEP_CHECKPOINT, STEP_RESTORE, STEP_UNLOCK };

/* Opens the driver at @path. NULL, or what is wrong. */
const char *driver_open(const char *path);

enum state driver_state(int pid);
const char *driver_state_name(enum state state);

/*
 * NULL, or why it failed; to be used at once. A call that does not end within @limit_ms goes on in
 * the driver, and nobody knows how it ends.
 */
const char *driver_step(enum step step, int pid, unsigned int limit_ms);
/* There was such a call. */
bool driver_is_busy(void);

#endif
