/* SPDX-License-Identifier: MIT */
/*
 * Decides which types of mediated devices are vGPUs of ours. Other vendors' drivers have mdev
 * types, too, and mdevctl asks about those as often.
 */
#ifndef MDEVCTL_PLUGINS_TYPE_H
#define MDEVCTL_PLUGINS_TYPE_H

#include "mdevctl-plugins/call.h"

/*
 * The call is about an existing vGPU, or a type whose name, without the GPU's driver in front, is
 * in types.d. Reads files only.
 */
gboolean type_is_ours(const Call *call);

#endif
