/* SPDX-License-Identifier: MIT */
/*
 * Finds a GPU's Vulkan driver: first closes the sandbox, then selects the driver that shows only
 * this GPU.
 */
#ifndef ENGINE_VULKAN_DRIVER_H
#define ENGINE_VULKAN_DRIVER_H

#include "gpu.h"
#include "icd.h"
#include "options.h"

/*
 * Closes the sandbox around @gpu, unless the options say otherwise, and returns the manifest of its
 * driver; @report is what that shows. NULL with @error set on failure.
 */
char *vulkan_driver_enter(const struct gpu *gpu, const struct options *options,
                          struct icd_report *report, GError **error);

#endif /* ENGINE_VULKAN_DRIVER_H */
