/* SPDX-License-Identifier: MIT */
/*
 * The process's contexts on all GPUs, those without a slice, too: work in any of them may write to
 * memory of another's.
 */
#ifndef GOVERNOR_CUDA_CONTEXTS_H
#define GOVERNOR_CUDA_CONTEXTS_H

#include "cuda_abi.h"

#include <stdbool.h>

void contexts_add(CUcontext context);
void contexts_remove(CUcontext context);
/* It may have ended, or have other users: from now on not all are known. */
void contexts_remove_detached(CUcontext context);
/* Whether contexts_each() finds all that may have work. */
bool contexts_are_known(void);
/* The one that is active; NULL: none. The runtime may have made it by a way that we do not see. */
CUcontext contexts_find_primary(CUdevice device);
/*
 * Calls @func for each, and for the primary context of each GPU that has one, whoever made it.
 * Under mover_hold(): none of them ends meanwhile.
 */
void contexts_each(void (*func)(CUcontext context, void *data), void *data);

#endif
