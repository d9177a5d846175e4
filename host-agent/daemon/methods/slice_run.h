/* SPDX-License-Identifier: MIT */
/* ClaimSlice, ReleaseSlice, RunSlice: slices of containers and of programs. */
#ifndef VGPUD_METHODS_SLICE_RUN_H
#define VGPUD_METHODS_SLICE_RUN_H

#include "host-agent/daemon/methods/vgpu_call.h"

/*
 * @container, or every user if it is NULL, does not use the slice any more. An ephemeral one is
 * removed.
 */
void slice_claim_end(Vgpus *vgpus, const char *uuid, const char *container);

/* Removes ephemeral slices whose removal has failed, as on a full disk. It is done each minute,
 * too. */
void slice_sweep(Vgpus *vgpus);

/* The same of those that an earlier vgpud has left. */
void slice_sweep_start(Vgpus *vgpus);

#endif
