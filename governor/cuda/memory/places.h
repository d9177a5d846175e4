/* SPDX-License-Identifier: MIT */
/*
 * Where memory is, for copies whose function does not say it. The driver is asked for ranges of
 * memory, and each thread remembers some.
 */
#ifndef GOVERNOR_CUDA_PLACES_H
#define GOVERNOR_CUDA_PLACES_H

#include "cuda_abi.h"

#include <stdbool.h>

/* Smaller copies are not asked for. */
#define PLACES_LARGE (1u << 20)

/* Both are of one GPU's own memory. False also if it is not known. */
bool places_are_inside(CUdeviceptr to, CUdeviceptr from, uint64_t bytes);
/* The same of the largest one of a list. */
bool places_are_inside_all(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *sizes,
                           size_t count);

#endif
