/* SPDX-License-Identifier: MIT */
/*
 * Which GPU a call is for. The process joins its slice when it first makes a context, allocates
 * memory, or asks how much there is. cuInit() joins nothing.
 */
#ifndef GOVERNOR_CUDA_JOIN_H
#define GOVERNOR_CUDA_JOIN_H

#include "gpu.h"

/* NULL: @device has no slice, or does not exist. */
struct gpu *gpu_of(CUdevice device);
/* The GPU of the calling thread's context. NULL: no context, or no slice. */
struct gpu *gpu_current(void);
/* Why a call fails for which own_settle() finds no room: the slice is full, or required and not
 * there. */
CUresult gpu_refusal(const struct gpu *gpu);
#endif
