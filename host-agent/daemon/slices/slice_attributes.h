/* SPDX-License-Identifier: MIT */
/*
 * What of a slice are attributes of its vGPU, in the driver and in mdevctl's configuration.
 */
#ifndef VGPUD_SLICE_ATTRIBUTES_H
#define VGPUD_SLICE_ATTRIBUTES_H

#include "host-agent/model/slice.h"

#define SLICE_ATTRIBUTES 8

/* Files in vgpu/ of the device in sysfs; mdevctl has them with "vgpu/" in front. */
extern const char *const slice_attribute_names[SLICE_ATTRIBUTES];

/* Their values, in that order; "": the slice does not say. */
GStrv slice_attributes(const Slice *slice);

#endif
