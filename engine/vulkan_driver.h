/* SPDX-License-Identifier: MIT */
/* The way to a GPU's Vulkan driver: into the sandbox, then the driver that shows this GPU alone. */
#ifndef ENGINE_VULKAN_DRIVER_H
#define ENGINE_VULKAN_DRIVER_H

#include "gpu.h"
#include "icd.h"
#include "options.h"

/*
 * Closes the sandbox around @gpu, unless the options say otherwise, and returns the manifest of its
 * driver; @report is what that shows. NULL with @error set.
 */
char *vulkan_driver_enter(const struct gpu *gpu, const struct options *options,
                          struct icd_report *report, GError **error);

#endif /* ENGINE_VULKAN_DRIVER_H */
