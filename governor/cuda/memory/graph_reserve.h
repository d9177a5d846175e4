/* SPDX-License-Identifier: MIT */
/*
 * Memory that graphs allocate when they run. The driver keeps it for the next run, and reports the
 * amount for each GPU.
 */
#ifndef GOVERNOR_CUDA_GRAPH_RESERVE_H
#define GOVERNOR_CUDA_GRAPH_RESERVE_H

#include "gpu.h"

/*
 * Corrects the charge for graphs to what the driver has reserved for them. @ahead: what was charged
 * besides, before that grew.
 */
void graph_settle(struct gpu *gpu, uint64_t ahead);
/* By how much the driver's reserve can grow for a graph that allocates @bytes. */
uint64_t graph_growth(const struct gpu *gpu, uint64_t bytes);
/* Returns all unused memory to the driver. True if there was any. */
bool graph_trim(struct gpu *gpu);

#endif
