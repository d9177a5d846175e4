// SPDX-License-Identifier: MIT
#include "results.h"

#define VISIBLE (VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)

/* The first accepted type with all @flags; -1: none. */
static int type_with(const VkPhysicalDeviceMemoryProperties *memory, uint32_t accepted,
                     VkMemoryPropertyFlags flags)
{
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
        if ((accepted >> i & 1) && (memory->memoryTypes[i].propertyFlags & flags) == flags)
            return (int)i;
    }
    return -1;
}

/*
 * A type that the host can read; every device has one for buffers. The first may be the GPU's own
 * memory, which a processor reads slowly across the bus, without its cache.
 */
static uint32_t visible_type(const VkPhysicalDeviceMemoryProperties *memory, uint32_t accepted)
{
    int cached = type_with(memory, accepted, VISIBLE | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    int any = type_with(memory, accepted, VISIBLE);

    return (uint32_t)(cached >= 0 ? cached : any >= 0 ? any : 0);
}

bool results_create(struct layer_device *device, uint32_t count, VkBuffer *buffer,
                    VkDeviceMemory *memory, uint64_t **words)
{
    const struct device_dispatch *next = &device->next;
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = count * sizeof(uint64_t),
        .usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT,
    };
    VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    VkMemoryRequirements needs;
    void *mapped;

    if (next->CreateBuffer(device->handle, &info, NULL, buffer) != VK_SUCCESS)
        return false;
    next->GetBufferMemoryRequirements(device->handle, *buffer, &needs);
    allocate.allocationSize = needs.size;
    allocate.memoryTypeIndex = visible_type(&device->memory, needs.memoryTypeBits);
    if (next->AllocateMemory(device->handle, &allocate, NULL, memory) != VK_SUCCESS ||
        next->BindBufferMemory(device->handle, *buffer, *memory, 0) != VK_SUCCESS ||
        next->MapMemory(device->handle, *memory, 0, VK_WHOLE_SIZE, 0, &mapped) != VK_SUCCESS)
        return false;
    *words = mapped;
    return true;
}

void results_destroy(struct layer_device *device, VkBuffer buffer, VkDeviceMemory memory)
{
    device->next.DestroyBuffer(device->handle, buffer, NULL);
    device->next.FreeMemory(device->handle, memory, NULL);
}
