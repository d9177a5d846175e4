/* SPDX-License-Identifier: MIT */
/*
 * Where memory goes that the arbiter lets a slice have beyond its limit. Where the driver pages
 * device memory by itself (it has VK_EXT_pageable_device_local_memory), it is allocated as asked
 * for. Else in host memory, where that is sure to fit: an allocation dedicated to one resource that
 * accepts another type of memory; what doesn't fit is allocated as asked for too, and the kernel's
 * driver may or may not move it. It is charged as spilled either way.
 */
#ifndef GOVERNOR_VULKAN_SPILL_H
#define GOVERNOR_VULKAN_SPILL_H

#include "device.h"

/* The type of memory to use instead of info->memoryTypeIndex; the same where there is no other. */
uint32_t spill_memory_type(struct layer_device *device, const VkMemoryAllocateInfo *info);

#endif /* GOVERNOR_VULKAN_SPILL_H */
