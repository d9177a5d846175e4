/* SPDX-License-Identifier: MIT */
/*
 * A vGPU's end: stopped where the kernel has it, then its definition, then its slice.
 */
#ifndef VGPUD_SLICES_ERASURE_H
#define VGPUD_SLICES_ERASURE_H

#include "host-agent/daemon/slices/mdevctl.h"
#include "host-agent/daemon/slices/slices.h"

/*
 * Calls @func when all of it is done, or at the first thing that fails. The slice must be in a state from which the
 * next start would go on (SLICE_CREATING, SLICE_REMOVING). @slices: lives longer.
 */
void erasure_run(Host *host, Slices *slices, const char *uuid, MdevctlFunc func, void *data);

#endif
