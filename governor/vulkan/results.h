/* SPDX-License-Identifier: MIT */
/*
 * Where the GPU leaves timestamps for us: a small buffer that the host reads without asking the
 * driver, since some wait for the whole device when asked for the result of a query. Too small to
 * be charged.
 */
#ifndef GOVERNOR_VULKAN_RESULTS_H
#define GOVERNOR_VULKAN_RESULTS_H

#include "device.h"

/* Of @count words, mapped. False: nothing that results_destroy() can't take. */
bool results_create(struct layer_device *device, uint32_t count, VkBuffer *buffer,
                    VkDeviceMemory *memory, uint64_t **words);
void results_destroy(struct layer_device *device, VkBuffer buffer, VkDeviceMemory memory);

#endif /* GOVERNOR_VULKAN_RESULTS_H */
