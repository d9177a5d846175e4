/* SPDX-License-Identifier: MIT */
/*
 * Memory that graphs allocate when they run. The driver keeps it for the next run, and reports the
 * amount for each GPU.
 */
#ifndef GOVERNOR_CUDA_GRAPH_H
#define GOVERNOR_CUDA_GRAPH_H

#include "gpu.h"

/* Returns all unused memory to the driver. True if there was any. */
bool graph_trim(struct gpu *gpu);

#endif
