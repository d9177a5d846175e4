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

/* Nothing of the process's moves from now on. All of it is there: the caller is behind the gate. */
void mover_stay(void);
/* The arbiter is told how much of what is charged cannot move, if that has changed. */
void mover_tell_unmovable(struct gpu *gpu);

#endif
