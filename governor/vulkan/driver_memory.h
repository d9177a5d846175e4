/* SPDX-License-Identifier: MIT */
/*
 * What a driver takes of device memory for itself (pipelines, descriptor pools, rings): what
 * VK_EXT_memory_budget says that this process uses, and the application has not asked for.
 *
 * Only where that usage is known to be this process's and to have the driver's own memory in it:
 * RADV, which counts all buffers that it has made or opened. lavapipe reports what the whole
 * machine uses; ANV, and other drivers of Mesa, only what was allocated by vkAllocateMemory();
 * NVIDIA's can't be read, and has not been tried.
 */
#ifndef GOVERNOR_VULKAN_DRIVER_MEMORY_H
#define GOVERNOR_VULKAN_DRIVER_MEMORY_H

#include "device.h"

/* Whether the driver is such a one. */
bool driver_memory_is_told(const struct layer_instance *instance, VkPhysicalDevice physical);

/* Asks the driver and tells the arbiter, but not more often than every 100 ms: to be called when
 * memory is allocated or freed. Never fails. Thread-safe. */
void driver_memory_look(struct layer_device *device);

/* The same at once: when a device has come or gone. Of @device only what is known of its driver is
 * used. */
void driver_memory_look_now(struct layer_device *device);

#endif /* GOVERNOR_VULKAN_DRIVER_MEMORY_H */
