/* SPDX-License-Identifier: MIT */
/*
 * Slices of one GPU and tenant that one container has by the door native: a program sees that GPU once, so
 * they are one share of it, as large as all of them. The arbiter knows it as the first of them, by
 * UUID, whose socket is the one that the governor's layer takes in a container that has several.
 */
#ifndef VGPUD_TOGETHER_H
#define VGPUD_TOGETHER_H

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/slices/slices.h"

/* UUID of the slice that stands for it: its own, where it is alone. Valid as long as that slice. */
const char *together_first(const Slices *slices, const Claims *claims, const Slice *slice);

/* As its arbiter is to know it, to be freed; NULL: not at all, another stands for it. */
Slice *together_share(const Slices *slices, const Claims *claims, const Slice *slice);

#endif
