/* SPDX-License-Identifier: MIT */
/*
 * What the driver has of the GPU for itself in this process: contexts, code, stacks. No call says
 * how much; the driver's library NVML does, for the whole process, where it lists it.
 */
#ifndef GOVERNOR_CUDA_OWN_H
#define GOVERNOR_CUDA_OWN_H

#include "gpu.h"

/* Charges what it is now. False: that is beyond the limit, and what it was before stays charged. */
bool own_settle(struct gpu *gpu);

#endif
