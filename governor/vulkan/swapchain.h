/* SPDX-License-Identifier: MIT */
/*
 * Images of swapchains. Drivers allocate them in ways that the layer does not see, so the charge is
 * the format's size times the extent.
 */
#ifndef GOVERNOR_VULKAN_SWAPCHAIN_H
#define GOVERNOR_VULKAN_SWAPCHAIN_H

#include "device.h"

/* For handle_map_destroy(); @data is the member. */
void swapchain_forget(void *record, void *data);

VKAPI_ATTR VkResult VKAPI_CALL layer_CreateSwapchainKHR(VkDevice device,
                                                        const VkSwapchainCreateInfoKHR *info,
                                                        const VkAllocationCallbacks *allocator,
                                                        VkSwapchainKHR *swapchain);
VKAPI_ATTR VkResult VKAPI_CALL layer_CreateSharedSwapchainsKHR(
    VkDevice device, uint32_t count, const VkSwapchainCreateInfoKHR *infos,
    const VkAllocationCallbacks *allocator, VkSwapchainKHR *swapchains);
VKAPI_ATTR void VKAPI_CALL layer_DestroySwapchainKHR(VkDevice device, VkSwapchainKHR swapchain,
                                                     const VkAllocationCallbacks *allocator);

#endif /* GOVERNOR_VULKAN_SWAPCHAIN_H */
