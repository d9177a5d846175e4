/* SPDX-License-Identifier: MIT */
/*
 * GPU memory that the driver uses itself in this process: contexts, code, stacks. No CUDA call
 * reports it. NVML reports the total of a process, if it lists the process.
 */
#ifndef GOVERNOR_CUDA_OWN_H
#define GOVERNOR_CUDA_OWN_H

#include "gpu.h"

/*
 * Charges the current amount, for a caller that can undo what made it grow. False: beyond the
 * limit; the previous amount stays charged.
 */
bool own_settle(struct gpu *gpu);
/* The same for what is there anyway: also beyond the limit. True if it is less than before. */
bool own_note(struct gpu *gpu);

#endif
