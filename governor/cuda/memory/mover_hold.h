/* SPDX-License-Identifier: MIT */
/* Who keeps memory from moving, and for how long movers keep threads out of the driver. */
#ifndef GOVERNOR_CUDA_MOVER_HOLD_H
#define GOVERNOR_CUDA_MOVER_HOLD_H

#include "gpu.h"

/* Nothing moves between the two. Not by a thread that is behind the gate. */
void mover_hold(void);
void mover_release(void);
/*
 * The same while a context ends: none of its is in use. In a process that never moved anything,
 * contexts end beside each other as they do without us.
 */
void mover_hold_contexts(void);
void mover_release_contexts(void);

/* After something was freed, between the two: if nothing is displaced any more, all threads go on.
 */
void mover_settle(struct gpu *gpu);

/* For a mover, between the two. False: a thread did not leave the driver in time. */
bool mover_shut_out(struct gpu *gpu, uint64_t limit_ns);
void mover_let_in(struct gpu *gpu);
/* Another number than before: somebody was behind the gate, and may have written since then. */
uint64_t mover_period(void);

#endif
