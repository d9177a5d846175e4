/* SPDX-License-Identifier: MIT */
/* A VM that is stopped, saved, and loaded by VFIO's migration, as a VMM does it. */
#ifndef MIGRATION_H
#define MIGRATION_H

#include "testbed.h"

#define STATE(name) VFIO_DEVICE_STATE_##name

/* The file of the last step, or -1. */
int migration_go_to(Testbed *tb, unsigned state);

/* The errno of a step that gives no file, or 0. */
int migration_refused(Testbed *tb, unsigned state);

/* What is left is the device, which a guest's firmware enables. */
void migration_reset(Testbed *tb);

/* A request that stays in flight: its answer's place. */
struct virtio_gpu_ctrl_hdr *migration_hold_request(Testbed *tb, uint64_t fence);

/* Calls of an engine: answers that request; saves a state of nothing. */
int migration_answer_held(EngineCtx *ctx, void *arg);
int migration_save_nothing(EngineCtx *ctx, void *arg);

/* The state of a VM, which is stopped then; the rest of a file. */
GByteArray *migration_save(Testbed *tb);
GByteArray *migration_read_all(int fd);

/* The file that the VMM reads while the VM runs. Skips the test if the kernel has none. */
int migration_pre_copy(Testbed *tb);

/* The body of a thread: stops the VM and has it saved. */
void *migration_stop_copy(void *tb);

/* A VMM for the target, with the source's memory, and a guest that has not noticed yet. */
Testbed *migration_target_of(Testbed *from);
int migration_load(Testbed *tb, const GByteArray *state);

#endif /* MIGRATION_H */
