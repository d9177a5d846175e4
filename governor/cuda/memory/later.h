/* SPDX-License-Identifier: MIT */
/*
 * Memory of cuMemAlloc that is freed in a stream's order. The driver frees it when the stream has
 * come to that, and it is charged as long: an event behind it tells.
 */
#ifndef GOVERNOR_CUDA_LATER_H
#define GOVERNOR_CUDA_LATER_H

#include "charge.h"

/* After the driver's call. Takes the charge. */
void later_give(struct charge *charge, CUstream stream, bool per_thread);

/*
 * At the limit: waits for memory of @gpu that is being freed, 100 ms at most. True if some was
 * given back.
 */
bool later_make_room(struct gpu *gpu);

/*
 * Before the context may end, and after it: if it did, its memory is free, and its events are gone.
 * NULL is none.
 */
void later_set_aside(CUcontext context);
void later_take_back(CUcontext context, bool is_over);

#endif
