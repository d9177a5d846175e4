/* SPDX-License-Identifier: MIT */
/*
 * Moves the process's memory off a GPU and back, as the arbiter orders. While some of it is
 * displaced the gate is closed (fronts.h).
 */
#ifndef GOVERNOR_CUDA_MOVER_H
#define GOVERNOR_CUDA_MOVER_H

#include "gpu.h"

/* A thread that follows the orders for @gpu's memory. False: there can be none. */
bool mover_start(struct gpu *gpu);

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

/* Nothing of the process's moves from now on. All of it is there: the caller is behind the gate. */
void mover_stay(void);

#endif
