/* SPDX-License-Identifier: MIT */
/*
 * Which streams capture, once memory of the process moves: the GPU's work cannot be waited for
 * meanwhile.
 */
#ifndef GOVERNOR_CUDA_CAPTURES_H
#define GOVERNOR_CUDA_CAPTURES_H

#include "cuda_abi.h"

#include <stdbool.h>

void captures_begin(CUstream stream);
/* Also of one that does not capture. */
void captures_end(CUstream stream);
bool captures_any(void);

#endif
