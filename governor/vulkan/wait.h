/* SPDX-License-Identifier: MIT */
#ifndef GOVERNOR_VULKAN_WAIT_H
#define GOVERNOR_VULKAN_WAIT_H

#include "device.h"

VKAPI_ATTR VkResult VKAPI_CALL layer_WaitForFences(VkDevice device, uint32_t count,
                                                   const VkFence *fences, VkBool32 all,
                                                   uint64_t timeout);
VKAPI_ATTR VkResult VKAPI_CALL layer_GetFenceStatus(VkDevice device, VkFence fence);
VKAPI_ATTR VkResult VKAPI_CALL layer_ResetFences(VkDevice device, uint32_t count,
                                                 const VkFence *fences);
VKAPI_ATTR void VKAPI_CALL layer_DestroyFence(VkDevice device, VkFence fence,
                                              const VkAllocationCallbacks *allocator);
VKAPI_ATTR VkResult VKAPI_CALL layer_WaitSemaphores(VkDevice device,
                                                    const VkSemaphoreWaitInfo *info,
                                                    uint64_t timeout);

#endif /* GOVERNOR_VULKAN_WAIT_H */
