/* SPDX-License-Identifier: MIT */
/*
 * Where the GPU leaves timestamps for us: a small buffer that the host reads without asking the
 * driver, because some drivers wait for the whole device when they are asked for a query's result.
 * Too small to be charged.
 */
#ifndef GOVERNOR_VULKAN_RESULTS_H
#define GOVERNOR_VULKAN_RESULTS_H

#include "layer_state.h"

/* Of @count words, mapped. On failure, results_destroy() can still be called. */
bool results_create(struct layer_device *device, uint32_t count, VkBuffer *buffer,
                    VkDeviceMemory *memory, uint64_t **words);
void results_destroy(struct layer_device *device, VkBuffer buffer, VkDeviceMemory memory);

#endif /* GOVERNOR_VULKAN_RESULTS_H */
