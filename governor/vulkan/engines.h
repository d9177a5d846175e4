/* SPDX-License-Identifier: MIT */
/*
 * The GPU's engines that the slice may use, in Vulkan's terms. Queue families are shown without the
 * flags of the others. There is no device with queues of a family that has no flags left. Nothing
 * is created that work for another engine would be recorded with.
 */
#ifndef GOVERNOR_VULKAN_ENGINES_H
#define GOVERNOR_VULKAN_ENGINES_H

#include "device.h"

/* Of VkVideoCodecOperationFlagsKHR: the lower half decodes, the upper half encodes. */
#define ENGINES_DECODERS 0x0000ffffu
#define ENGINES_ENCODERS 0xffff0000u

/* The part of a family's @flags that may be used. 0: nothing of the family. */
VkQueueFlags engines_allow(uint32_t engines, VkQueueFlags flags);

/* Whether @info requests only queues of allowed families; otherwise standard error says so. */
bool engines_allow_queues(const struct layer_device *device, VkPhysicalDevice physical,
                          const VkDeviceCreateInfo *info);

VKAPI_ATTR void VKAPI_CALL layer_GetPhysicalDeviceQueueFamilyProperties(
    VkPhysicalDevice physical, uint32_t *count, VkQueueFamilyProperties *families);
VKAPI_ATTR void VKAPI_CALL layer_GetPhysicalDeviceQueueFamilyProperties2(
    VkPhysicalDevice physical, uint32_t *count, VkQueueFamilyProperties2 *families);

VKAPI_ATTR VkResult VKAPI_CALL
layer_CreateComputePipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                             const VkComputePipelineCreateInfo *infos,
                             const VkAllocationCallbacks *allocator, VkPipeline *pipelines);
VKAPI_ATTR VkResult VKAPI_CALL
layer_CreateGraphicsPipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                              const VkGraphicsPipelineCreateInfo *infos,
                              const VkAllocationCallbacks *allocator, VkPipeline *pipelines);
VKAPI_ATTR VkResult VKAPI_CALL layer_CreateRayTracingPipelinesKHR(
    VkDevice device, VkDeferredOperationKHR operation, VkPipelineCache cache, uint32_t count,
    const VkRayTracingPipelineCreateInfoKHR *infos, const VkAllocationCallbacks *allocator,
    VkPipeline *pipelines);
VKAPI_ATTR VkResult VKAPI_CALL
layer_CreateRayTracingPipelinesNV(VkDevice device, VkPipelineCache cache, uint32_t count,
                                  const VkRayTracingPipelineCreateInfoNV *infos,
                                  const VkAllocationCallbacks *allocator, VkPipeline *pipelines);
VKAPI_ATTR VkResult VKAPI_CALL layer_CreateCuFunctionNVX(VkDevice device,
                                                         const VkCuFunctionCreateInfoNVX *info,
                                                         const VkAllocationCallbacks *allocator,
                                                         VkCuFunctionNVX *function);
VKAPI_ATTR VkResult VKAPI_CALL layer_CreateOpticalFlowSessionNV(
    VkDevice device, const VkOpticalFlowSessionCreateInfoNV *info,
    const VkAllocationCallbacks *allocator, VkOpticalFlowSessionNV *session);
VKAPI_ATTR VkResult VKAPI_CALL layer_CreateShadersEXT(VkDevice device, uint32_t count,
                                                      const VkShaderCreateInfoEXT *infos,
                                                      const VkAllocationCallbacks *allocator,
                                                      VkShaderEXT *shaders);
VKAPI_ATTR VkResult VKAPI_CALL layer_CreateVideoSessionKHR(VkDevice device,
                                                           const VkVideoSessionCreateInfoKHR *info,
                                                           const VkAllocationCallbacks *allocator,
                                                           VkVideoSessionKHR *session);

#endif /* GOVERNOR_VULKAN_ENGINES_H */
