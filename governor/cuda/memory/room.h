/* SPDX-License-Identifier: MIT */
/* Charges for memory that is asked for. At the limit, what is kept unused is first given back. */
#ifndef GOVERNOR_CUDA_ROOM_H
#define GOVERNOR_CUDA_ROOM_H

#include "charge.h"

/* False: beyond the limit. @gpu NULL: true, and nothing is charged. */
bool room_take(struct gpu *gpu, uint64_t bytes, struct charge *charge);
/*
 * The same for memory that need not be on the GPU: beyond the limit the slice's spill is charged,
 * if it has one with so much left.
 */
bool room_take_or_spill(struct gpu *gpu, uint64_t bytes, struct charge *charge);
/* Pools and graphs give back what they keep unused. True if there was something. */
bool room_make(struct gpu *gpu);

#endif
