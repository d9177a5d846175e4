/* SPDX-License-Identifier: MIT */
/* The names by which GPUs are called: a PCI address, or soft:NAME for one that is no device. */
#ifndef LIB_GPU_NAME_H
#define LIB_GPU_NAME_H

#include <glib.h>

#define GPU_SOFT_PREFIX "soft:"

/* What gpu_name_valid() accepts, for error messages. */
#define GPU_NAME_RULE                                                                              \
    "a full PCI address in lower case such as 0000:01:00.0 (lspci -D shows them), soft:NAME, or "  \
    "in gpus.conf uuid= and what \"vgpuctl gpu show\" has as Uuid"

gboolean gpu_name_valid(const char *name);
gboolean gpu_name_is_soft(const char *name);

#endif
