/* SPDX-License-Identifier: MIT */
/*
 * Memory that graphs allocate when they run. The driver keeps it for the next run, and says for
 * each GPU how much it has.
 */
#ifndef GOVERNOR_CUDA_GRAPH_H
#define GOVERNOR_CUDA_GRAPH_H

#include "gpu.h"

/* All that is not in use goes back to the driver. True where that was something. */
bool graph_trim(struct gpu *gpu);

#endif
