/* SPDX-License-Identifier: MIT */
#ifndef GOVERNOR_NVML_SLICE_H
#define GOVERNOR_NVML_SLICE_H

#include "member.h"
#include "nvml_abi.h"

/* The membership of this process in the slice of @device; NULL: it has none, or it can't be had
 * now. */
GovernorMember *slice_of(nvmlDevice_t device);

#endif
