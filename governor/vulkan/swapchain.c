// SPDX-License-Identifier: MIT
#include "swapchain.h"

#include <stdlib.h>

#include "charge.h"

static uint64_t pixel_bytes(VkFormat format)
{
    if (format == VK_FORMAT_R16G16B16A16_SFLOAT || format == VK_FORMAT_R16G16B16A16_UNORM)
        return 8;
    if (format >= VK_FORMAT_R4G4B4A4_UNORM_PACK16 && format <= VK_FORMAT_A1R5G5B5_UNORM_PACK16)
        return 2;
    return 4;
}

static uint32_t local_heap(const VkPhysicalDeviceMemoryProperties *memory)
{
    for (uint32_t i = 0; i < memory->memoryHeapCount; i++) {
        if (memory_heap_is_local(memory, i))
            return i;
    }
    return 0;
}

/* Charges the images of @swapchain; false if they exceed the limit. */
static bool charge_images(struct layer_device *device, const VkSwapchainCreateInfoKHR *info,
                          VkSwapchainKHR swapchain)
{
    struct charge *charge = calloc(1, sizeof(*charge));
    uint32_t images = info->minImageCount;
    uint64_t bytes = (uint64_t)info->imageExtent.width * info->imageExtent.height *
                     info->imageArrayLayers * pixel_bytes(info->imageFormat);

    device->next.GetSwapchainImagesKHR(device->handle, swapchain, &images, NULL);
    if (!charge ||
        !memory_charge(device, bytes * images, local_heap(&device->memory), false, charge) ||
        !handle_map_add(&device->swapchains, (uint64_t)swapchain, charge)) {
        if (charge)
            memory_give_back(charge);
        free(charge);
        return false;
    }
    return true;
}

void swapchain_forget(void *record, void *data)
{
    (void)data;
    memory_give_back(record);
    free(record);
}

static void destroy_swapchain(struct layer_device *device, VkSwapchainKHR swapchain,
                              const VkAllocationCallbacks *allocator)
{
    struct charge *charge = handle_map_remove(&device->swapchains, (uint64_t)swapchain);

    device->next.DestroySwapchainKHR(device->handle, swapchain, allocator);
    if (charge)
        swapchain_forget(charge, NULL);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_CreateSharedSwapchainsKHR(
    VkDevice handle, uint32_t count, const VkSwapchainCreateInfoKHR *infos,
    const VkAllocationCallbacks *allocator, VkSwapchainKHR *swapchains)
{
    struct layer_device *device = device_of(handle);
    VkResult result =
        device->next.CreateSharedSwapchainsKHR(handle, count, infos, allocator, swapchains);
    bool charged = true;

    for (uint32_t i = 0; result == VK_SUCCESS && i < count && charged; i++)
        charged = charge_images(device, &infos[i], swapchains[i]);
    if (result != VK_SUCCESS || charged)
        return result;
    for (uint32_t i = 0; i < count; i++) {
        destroy_swapchain(device, swapchains[i], allocator);
        swapchains[i] = VK_NULL_HANDLE;
    }
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

VKAPI_ATTR VkResult VKAPI_CALL layer_CreateSwapchainKHR(VkDevice handle,
                                                        const VkSwapchainCreateInfoKHR *info,
                                                        const VkAllocationCallbacks *allocator,
                                                        VkSwapchainKHR *swapchain)
{
    struct layer_device *device = device_of(handle);
    VkResult result = device->next.CreateSwapchainKHR(handle, info, allocator, swapchain);

    if (result != VK_SUCCESS || charge_images(device, info, *swapchain))
        return result;
    destroy_swapchain(device, *swapchain, allocator);
    *swapchain = VK_NULL_HANDLE;
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

VKAPI_ATTR void VKAPI_CALL layer_DestroySwapchainKHR(VkDevice handle, VkSwapchainKHR swapchain,
                                                     const VkAllocationCallbacks *allocator)
{
    destroy_swapchain(device_of(handle), swapchain, allocator);
}
