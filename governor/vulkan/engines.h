/* SPDX-License-Identifier: MIT */
/*
 * The GPU's engines that the slice may use, in Vulkan's terms. Queue families are shown without the
 * flags of the others. There is no device with queues of a family that has no flags left. Nothing
 * is created that work for another engine would be recorded with.
 */
#ifndef GOVERNOR_VULKAN_ENGINES_H
#define GOVERNOR_VULKAN_ENGINES_H

#include "layer_state.h"

/* Of VkVideoCodecOperationFlagsKHR: the lower half decodes, the upper half encodes. */
#define ENGINES_DECODERS 0x0000ffffu
#define ENGINES_ENCODERS 0xffff0000u

/* The part of a family's @flags that may be used. 0: nothing of the family. */
VkQueueFlags engines_allow(uint32_t engines, VkQueueFlags flags);

/* Whether @info requests only queues of allowed families; otherwise standard error says so. */
bool engines_allow_queues(const struct layer_device *device, VkPhysicalDevice physical,
                          const VkDeviceCreateInfo *info);

LAYER_COMMAND(GetPhysicalDeviceQueueFamilyProperties);
LAYER_COMMAND(GetPhysicalDeviceQueueFamilyProperties2);
LAYER_COMMAND(CreateComputePipelines);
LAYER_COMMAND(CreateGraphicsPipelines);
LAYER_COMMAND(CreateRayTracingPipelinesKHR);
LAYER_COMMAND(CreateRayTracingPipelinesNV);
LAYER_COMMAND(CreateCuFunctionNVX);
LAYER_COMMAND(CreateOpticalFlowSessionNV);
LAYER_COMMAND(CreateShadersEXT);
LAYER_COMMAND(CreateVideoSessionKHR);

#endif /* GOVERNOR_VULKAN_ENGINES_H */
