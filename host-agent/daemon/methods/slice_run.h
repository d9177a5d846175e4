/* SPDX-License-Identifier: MIT */
/* ClaimSlice, ReleaseSlice, RunSlice: slices of containers and of programs. */
#ifndef VGPUD_METHODS_SLICE_RUN_H
#define VGPUD_METHODS_SLICE_RUN_H

#include "host-agent/daemon/methods/vgpu_call.h"

/* The end of a container that used a slice. */

/* Its container has ended: the slice is free, and an ephemeral one is removed. */
void slice_claim_end(Vgpus *vgpus, const char *uuid);

#endif
