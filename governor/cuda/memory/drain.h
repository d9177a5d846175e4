/* SPDX-License-Identifier: MIT */
/* Waits for all work in contexts, for a time: by a thread that stays in the driver if it must. */
#ifndef GOVERNOR_CUDA_DRAIN_H
#define GOVERNOR_CUDA_DRAIN_H

#include "cuda_abi.h"

#include <stdbool.h>
#include <stdint.h>

#define DRAIN_CONTEXTS 256

enum drained { DRAINED, DRAIN_LATE, DRAIN_FAILED };

/* By one thread at a time. */
enum drained drain(const CUcontext *contexts, unsigned int count, uint64_t limit_ns);
/* Before a context ends: the thread is not in the driver any more. */
void drain_settle(void);

#endif
