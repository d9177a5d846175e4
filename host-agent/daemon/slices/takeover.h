/* SPDX-License-Identifier: MIT */
/*
 * What others have said of a vGPU, in the driver's attributes or in mdevctl's configuration, taken
 * into its slice.
 */
#ifndef VGPUD_TAKEOVER_H
#define VGPUD_TAKEOVER_H

#include "host-agent/daemon/slices/offers.h"
#include "host-agent/model/slice.h"
#include "lib/definition.h"
#include "lib/vgpu.h"

/* As the driver has it. */
void takeover_vgpu(Slice *slice, const Vgpu *vgpu);

/* What the type has, where nobody says otherwise. */
void takeover_type(Slice *slice, const Offer *offer);

/* What the definition says; all else stays. */
void takeover_definition(Slice *slice, const Definition *definition);

#endif
