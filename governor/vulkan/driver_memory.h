/* SPDX-License-Identifier: MIT */
/*
 * The device memory that a driver uses for itself (pipelines, descriptor pools, rings): this
 * process's use by VK_EXT_memory_budget, minus what the application has requested.
 *
 * Only if that use is known to be this process's and to include the driver's own memory: RADV,
 * which counts all buffers that it has made or opened. lavapipe reports what the whole machine
 * uses. ANV, and other drivers of Mesa, report only what vkAllocateMemory() allocated. NVIDIA's
 * source cannot be read, and its driver is untested.
 */
#ifndef GOVERNOR_VULKAN_DRIVER_MEMORY_H
#define GOVERNOR_VULKAN_DRIVER_MEMORY_H

#include "layer_state.h"

/* Whether the driver is one of these. */
bool driver_memory_is_told(const struct layer_instance *instance, VkPhysicalDevice physical);

/*
 * Asks the driver and tells the arbiter, but not more often than every 100 ms. To be called when
 * memory is allocated or freed. Never fails. Thread-safe.
 */
void driver_memory_look(struct layer_device *device);

/*
 * The same at once: when a device was created or destroyed. Only what is known of @device's driver
 * is used.
 */
void driver_memory_look_now(struct layer_device *device);

#endif /* GOVERNOR_VULKAN_DRIVER_MEMORY_H */
