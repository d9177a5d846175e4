/* SPDX-License-Identifier: MIT */
/* Physical memory that the program maps itself. */
#ifndef GOVERNOR_CUDA_VMM_H
#define GOVERNOR_CUDA_VMM_H

#include "cuda_abi.h"

/*
 * Before the end of an array, mipmapped or not: what is mapped into it is @other's, for right after
 * it another thread can get the same handle.
 */
void vmm_rename_array(const void *array, const void *other);
/* After the end of an array or of a context: it has no memory any more. */
void vmm_array_ended(const void *array);
void vmm_context_ended(CUcontext context);

#endif
