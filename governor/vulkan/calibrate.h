/* SPDX-License-Identifier: MIT */
/*
 * The GPU's timestamps as times of CLOCK_MONOTONIC, if the driver can read both clocks at once
 * (VK_KHR_calibrated_timestamps, or its predecessor of the same form). The layer enables that
 * extension: it adds a command, and changes nothing else.
 */
#ifndef GOVERNOR_VULKAN_CALIBRATE_H
#define GOVERNOR_VULKAN_CALIBRATE_H

#include "layer_state.h"

/*
 * The extension to be enabled for @info's device; NULL: none, or the application enables it. Only
 * if the driver can read both clocks.
 */
const char *calibrate_extension(const struct layer_instance *instance, VkPhysicalDevice physical,
                                const VkDeviceCreateInfo *info);

/* Whether the application enables it. */
bool calibrate_is_enabled(const VkDeviceCreateInfo *info);

/*
 * CLOCK_MONOTONIC at @tick of @queue; false: unknown. Reads the clocks once a second at most. Under
 * the queue's lock.
 */
bool calibrate_time(struct layer_queue *queue, uint64_t tick, uint64_t *at_ns);

#endif /* GOVERNOR_VULKAN_CALIBRATE_H */
