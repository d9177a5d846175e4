/* SPDX-License-Identifier: MIT */
/*
 * Which types of mediated devices are vGPUs of ours. Other vendors' drivers have mdev types, too,
 * and theirs is what mdevctl asks about as often.
 */
#ifndef CALLOUT_TYPE_H
#define CALLOUT_TYPE_H

#include "mdevctl-plugins/call.h"

/*
 * The call is about a vGPU that there is, or a type whose name, less the GPU's driver in front, is
 * one of types.d's. Looks at files only.
 */
gboolean type_is_ours(const Call *call);

#endif
