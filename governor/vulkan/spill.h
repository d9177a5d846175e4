/* SPDX-License-Identifier: MIT */
/*
 * Where memory goes that the arbiter grants beyond the slice's limit. If the driver pages device
 * memory by itself (it has VK_EXT_pageable_device_local_memory), it is allocated as requested.
 * Otherwise it goes to host memory if that certainly fits: an allocation that is dedicated to one
 * resource that accepts another memory type. The rest is allocated as requested, too, and the
 * kernel's driver may or may not move it. It is charged as spilled in every case.
 */
#ifndef GOVERNOR_VULKAN_SPILL_H
#define GOVERNOR_VULKAN_SPILL_H

#include "layer_state.h"

/* The memory type to use instead of info->memoryTypeIndex; the same if there is no other. */
uint32_t spill_memory_type(struct layer_device *device, const VkMemoryAllocateInfo *info);

#endif /* GOVERNOR_VULKAN_SPILL_H */
