/* SPDX-License-Identifier: MIT */
#ifndef GOVERNOR_NVML_SLICE_H
#define GOVERNOR_NVML_SLICE_H

#include "member.h"
#include "nvml_abi.h"

/* This process's membership in the slice of @device; NULL: no slice, or it cannot be joined now. */
GovernorMember *slice_of(nvmlDevice_t device);

#endif
