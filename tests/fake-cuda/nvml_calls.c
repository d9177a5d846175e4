// SPDX-License-Identifier: MIT
/*
 * Every name of NVML's table, for those that nothing else defines: this GPU does not support it, as
 * a program like nvidia-smi is often told.
 */
#include "nvml_abi.h"

/* A driver that is older than the table lacks some. */
#define nvmlDeviceGetAPIRestriction fake_nvml_lacks

#define C(name, base, since, class, kind, words)                                                   \
    nvmlReturn_t name(void);                                                                       \
    __attribute__((weak)) nvmlReturn_t name(void)                                                  \
    {                                                                                              \
        return NVML_ERROR_NOT_SUPPORTED;                                                           \
    }
#include "nvml/calls.inc"
