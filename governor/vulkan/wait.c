// SPDX-License-Identifier: MIT
/*
 * How an application learns that work has ended, and what it then does with fences. For an idle
 * queue see queue.c.
 */
#include "wait.h"

#include "retire.h"

static void has_seen(struct layer_device *device)
{
    for (uint32_t i = 0; i < device->queue_count; i++)
        retire_seen(&device->queues[i]);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_WaitForFences(VkDevice handle, uint32_t count,
                                                   const VkFence *fences, VkBool32 all,
                                                   uint64_t timeout)
{
    struct layer_device *device = device_of(handle);
    VkResult result = device->next.WaitForFences(handle, count, fences, all, timeout);

    if (result == VK_SUCCESS)
        has_seen(device);
    return result;
}

VKAPI_ATTR VkResult VKAPI_CALL layer_GetFenceStatus(VkDevice handle, VkFence fence)
{
    struct layer_device *device = device_of(handle);
    VkResult result = device->next.GetFenceStatus(handle, fence);

    if (result == VK_SUCCESS)
        has_seen(device);
    return result;
}

VKAPI_ATTR VkResult VKAPI_CALL layer_WaitSemaphores(VkDevice handle,
                                                    const VkSemaphoreWaitInfo *info,
                                                    uint64_t timeout)
{
    struct layer_device *device = device_of(handle);
    VkResult result = device->next.WaitSemaphores(handle, info, timeout);

    if (result == VK_SUCCESS)
        has_seen(device);
    return result;
}

static void will_forget(struct layer_device *device, VkFence fence)
{
    for (uint32_t i = 0; i < device->queue_count; i++)
        retire_fence(&device->queues[i], fence);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_ResetFences(VkDevice handle, uint32_t count,
                                                 const VkFence *fences)
{
    struct layer_device *device = device_of(handle);

    for (uint32_t i = 0; i < count; i++)
        will_forget(device, fences[i]);
    return device->next.ResetFences(handle, count, fences);
}

VKAPI_ATTR void VKAPI_CALL layer_DestroyFence(VkDevice handle, VkFence fence,
                                              const VkAllocationCallbacks *allocator)
{
    struct layer_device *device = device_of(handle);

    if (fence)
        will_forget(device, fence);
    device->next.DestroyFence(handle, fence, allocator);
}
