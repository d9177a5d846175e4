/* SPDX-License-Identifier: MIT */
#ifndef GOVERNOR_NVML_SLICE_H
#define GOVERNOR_NVML_SLICE_H

#include "member.h"
#include "nvml_abi.h"

/* This process's membership in the slice of @device; NULL: no slice. */
GovernorMember *slice_of(nvmlDevice_t device);

#endif
