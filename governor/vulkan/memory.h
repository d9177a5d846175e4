/* SPDX-License-Identifier: MIT */
/*
 * Device memory: charged to the slice before it is allocated, returned after it is freed.
 *
 * Memory in DEVICE_LOCAL heaps is charged, once for each physical device that has an instance of
 * it. Memory that is imported by a file descriptor is charged if its slice has not been charged for
 * the same object already (memory_object.h). Imported host memory is not the device's. Sparse
 * resources are charged by the memory that is bound to them. What a driver uses for itself
 * (pipelines, descriptor pools, query pools) is charged if the driver reports it (driver_memory.h).
 */
#ifndef GOVERNOR_VULKAN_MEMORY_H
#define GOVERNOR_VULKAN_MEMORY_H

#include "device.h"

/* A charge; the heap is where this process's use of it is counted. */
struct charge {
    uint64_t bytes; /* 0: nothing */
    struct layer_slice *slice;
    enum governor_memory kind;
    uint32_t heap;
};

/* False: beyond the limit, nothing is charged. */
bool memory_charge(struct layer_device *device, uint64_t bytes, uint32_t heap, bool may_spill,
                   struct charge *charge);
void memory_give_back(struct charge *charge);

/* Counts a charge as this process's, or not any more: it becomes empty. */
void memory_count(const struct charge *charge);
void memory_uncount(struct charge *charge);

/* This process's charge in @heap, and the spilled part of all heaps. */
static inline uint64_t memory_heap_usage(const struct layer_slice *slice, uint32_t heap)
{
    return atomic_load(&slice->heap_usage[heap]);
}

static inline uint64_t memory_spilled(const struct layer_slice *slice)
{
    return atomic_load(&slice->spilled);
}

static inline bool memory_heap_is_local(const VkPhysicalDeviceMemoryProperties *memory,
                                        uint32_t heap)
{
    return memory->memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
}

/* For handle_map_destroy(). */
void memory_forget(void *record, void *data);

VKAPI_ATTR VkResult VKAPI_CALL layer_AllocateMemory(VkDevice device,
                                                    const VkMemoryAllocateInfo *info,
                                                    const VkAllocationCallbacks *allocator,
                                                    VkDeviceMemory *memory);
VKAPI_ATTR void VKAPI_CALL layer_FreeMemory(VkDevice device, VkDeviceMemory memory,
                                            const VkAllocationCallbacks *allocator);
VKAPI_ATTR VkResult VKAPI_CALL layer_GetMemoryFdKHR(VkDevice device,
                                                    const VkMemoryGetFdInfoKHR *info, int *fd);

VKAPI_ATTR void VKAPI_CALL layer_GetPhysicalDeviceMemoryProperties(
    VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties *properties);
VKAPI_ATTR void VKAPI_CALL layer_GetPhysicalDeviceMemoryProperties2(
    VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties2 *properties);

#endif /* GOVERNOR_VULKAN_MEMORY_H */
