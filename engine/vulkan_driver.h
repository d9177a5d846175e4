/* SPDX-License-Identifier: MIT */
/*
 * Finds a GPU and its Vulkan driver: waits for the GPU, closes the sandbox around it, then selects
 * the driver that shows only this GPU.
 */
#ifndef ENGINE_VULKAN_DRIVER_H
#define ENGINE_VULKAN_DRIVER_H

#include "gpu.h"
#include "icd.h"
#include "options.h"

/**
 * struct vulkan_driver
 * @manifest: of the GPU's driver
 * @report: what that shows; if it is @known, only how memory is exported
 * @known: vgpu-describe has found the driver, and it was not asked again
 */
struct vulkan_driver {
    struct gpu *gpu;
    char *manifest;
    struct icd_report report;
    bool known;
};

/*
 * Closes the sandbox around the GPU @name, unless the options say otherwise, and fills in @driver.
 * A GPU that is being reset is gone for seconds, or its driver shows nothing, so both are tried for
 * 25 s. False with @error set on failure; @driver is to be cleared in any case.
 */
bool vulkan_driver_enter(struct vulkan_driver *driver, const char *name,
                         const struct options *options, GError **error);

void vulkan_driver_clear(struct vulkan_driver *driver);

#endif /* ENGINE_VULKAN_DRIVER_H */
