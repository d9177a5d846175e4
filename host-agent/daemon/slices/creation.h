/* SPDX-License-Identifier: MIT */
/*
 * vGPUs being made: all of a request, or none.
 */
#ifndef VGPUD_SLICES_CREATION_H
#define VGPUD_SLICES_CREATION_H

#include "host-agent/daemon/slices/mdevctl.h"
#include "host-agent/daemon/slices/slices.h"

/*
 * @list: of Slice, taken, in state SLICE_CREATING and stored already; those with @defined are defined too. @window:
 * bytes; 0: the types'. Calls @func when they are ready, or when what there was of them is gone again.
 */
void creation_run(Host *host, Slices *slices, GPtrArray *list, guint64 window, MdevctlFunc func,
                  void *data);

#endif
