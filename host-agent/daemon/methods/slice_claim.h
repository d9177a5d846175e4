/* SPDX-License-Identifier: MIT */
/* The end of a container that used a slice. */
#ifndef VGPUD_METHODS_SLICE_CLAIM_H
#define VGPUD_METHODS_SLICE_CLAIM_H

#include "host-agent/daemon/methods/vgpus.h"

/* Its container has ended: the slice is free, and an ephemeral one is removed. */
void slice_claim_end(Vgpus *vgpus, const char *uuid);

#endif
