// SPDX-License-Identifier: MIT
#include "spill.h"

/* How the application may use memory; only its location may change. */
#define USES                                                                                       \
    (VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT |                  \
     VK_MEMORY_PROPERTY_HOST_CACHED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT)

/* The memory types that the resource of a dedicated allocation can be bound to. */
static uint32_t accepted_types(struct layer_device *device,
                               const VkMemoryDedicatedAllocateInfo *dedicated)
{
    VkMemoryRequirements2 needs = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2};
    VkImageMemoryRequirementsInfo2 image = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_REQUIREMENTS_INFO_2, .image = dedicated->image};
    VkBufferMemoryRequirementsInfo2 buffer = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2, .buffer = dedicated->buffer};

    if (dedicated->image && device->next.GetImageMemoryRequirements2)
        device->next.GetImageMemoryRequirements2(device->handle, &image, &needs);
    else if (dedicated->buffer && device->next.GetBufferMemoryRequirements2)
        device->next.GetBufferMemoryRequirements2(device->handle, &buffer, &needs);
    return needs.memoryRequirements.memoryTypeBits;
}

uint32_t spill_memory_type(struct layer_device *device, const VkMemoryAllocateInfo *info)
{
    const VkMemoryDedicatedAllocateInfo *dedicated =
        chain_find(info->pNext, VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO);
    const VkMemoryType *types = device->memory.memoryTypes;
    VkMemoryPropertyFlags uses = types[info->memoryTypeIndex].propertyFlags & USES;
    uint32_t accepted;

    /* Other processes identify an exported object by its memory type, too. */
    if (device->pages || !dedicated ||
        chain_find(info->pNext, VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO))
        return info->memoryTypeIndex;
    accepted = accepted_types(device, dedicated);
    for (uint32_t i = 0; i < device->memory.memoryTypeCount; i++) {
        const VkMemoryHeap *heap = &device->memory.memoryHeaps[types[i].heapIndex];

        if ((accepted >> i & 1) && !(heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) &&
            (types[i].propertyFlags & uses) == uses)
            return i;
    }
    return info->memoryTypeIndex;
}
