// SPDX-License-Identifier: MIT
/* All functions of NVML that nvml.c does not have: they say that they are not supported. */
#include "nvml_abi.h"

#define E(name, base, since, class, kind, signature)                                               \
    __attribute__((weak, visibility("default"))) nvmlReturn_t name(void);                          \
    nvmlReturn_t name(void)                                                                        \
    {                                                                                              \
        return NVML_ERROR_NOT_SUPPORTED;                                                           \
    }
#include "nvml_entry_points.def"
