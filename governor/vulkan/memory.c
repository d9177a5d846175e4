// SPDX-License-Identifier: MIT
#include "memory.h"

#include <stdlib.h>

#include "driver_memory.h"
#include "memory_object.h"
#include "spill.h"

/* A VkDeviceMemory. Its charge moves to @object once it is shared. */
struct allocation {
    struct charge charge;
    struct memory_object *object;
};

/* How many physical devices get memory by this. */
static uint32_t instances_of(const struct layer_device *device, const VkMemoryAllocateInfo *info,
                             uint32_t heap)
{
    const VkMemoryAllocateFlagsInfo *flags =
        chain_find(info->pNext, VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);

    if (flags && (flags->flags & VK_MEMORY_ALLOCATE_DEVICE_MASK_BIT))
        return (uint32_t)__builtin_popcount(flags->deviceMask);
    if (device->memory.memoryHeaps[heap].flags & VK_MEMORY_HEAP_MULTI_INSTANCE_BIT)
        return device->physical_devices;
    return 1;
}

/* The import of an allocation. @fd is -1 if it is not a file descriptor. */
struct import {
    int fd;
    bool from_host;
};

static struct import import_of(const VkMemoryAllocateInfo *info)
{
    const VkImportMemoryFdInfoKHR *file =
        chain_find(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR);
    const VkImportMemoryHostPointerInfoEXT *host =
        chain_find(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);

    return (struct import){.fd = file && file->handleType ? file->fd : -1,
                           .from_host = host && host->handleType};
}

/* Charges what @info requests; changes @used, a copy of it, if it is to be elsewhere. */
static bool charge_allocation(struct layer_device *device, const VkMemoryAllocateInfo *info,
                              struct allocation *allocation, VkMemoryAllocateInfo *used)
{
    uint32_t heap = device->memory.memoryTypes[info->memoryTypeIndex].heapIndex;
    struct import import = import_of(info);
    uint64_t bytes = info->allocationSize * instances_of(device, info, heap);

    if (!memory_heap_is_local(&device->memory, heap) || import.from_host)
        return true;
    if (import.fd >= 0)
        allocation->object = memory_object_get(import.fd, device->slice);
    if (allocation->object)
        return memory_object_import(allocation->object, bytes, heap);
    if (!memory_charge(device, bytes, heap, import.fd < 0, &allocation->charge))
        return false;
    if (allocation->charge.kind == GOVERNOR_MEMORY_SPILL)
        used->memoryTypeIndex = spill_memory_type(device, info);
    return true;
}

static void discharge_allocation(struct allocation *allocation)
{
    memory_give_back(&allocation->charge);
    memory_object_put(allocation->object);
    free(allocation);
}

void memory_forget(void *record, void *data)
{
    (void)data;
    discharge_allocation(record);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_AllocateMemory(VkDevice handle,
                                                    const VkMemoryAllocateInfo *info,
                                                    const VkAllocationCallbacks *allocator,
                                                    VkDeviceMemory *memory)
{
    struct layer_device *device = device_of(handle);
    struct allocation *allocation = calloc(1, sizeof(*allocation));
    VkMemoryAllocateInfo used = *info;
    VkResult result;

    if (!allocation)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    if (!charge_allocation(device, info, allocation, &used)) {
        discharge_allocation(allocation);
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    result = device->next.AllocateMemory(handle, &used, allocator, memory);
    if (result != VK_SUCCESS) {
        discharge_allocation(allocation);
        return result;
    }
    if (!handle_map_add(&device->allocations, (uint64_t)*memory, allocation)) {
        device->next.FreeMemory(handle, *memory, allocator);
        *memory = VK_NULL_HANDLE;
        discharge_allocation(allocation);
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    driver_memory_look(device);
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL layer_FreeMemory(VkDevice handle, VkDeviceMemory memory,
                                            const VkAllocationCallbacks *allocator)
{
    struct layer_device *device = device_of(handle);
    struct allocation *allocation = handle_map_remove(&device->allocations, (uint64_t)memory);

    device->next.FreeMemory(handle, memory, allocator);
    if (allocation)
        discharge_allocation(allocation);
    driver_memory_look(device);
}

/*
 * The first export of an allocation makes it an object. This happens before the application has the
 * descriptor, because its receiver may import it at once.
 */
static void share_allocation(struct allocation *allocation, int fd)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    if (allocation->charge.bytes && !allocation->object) {
        allocation->object = memory_object_get(fd, allocation->charge.slice);
        if (allocation->object)
            memory_object_export(allocation->object, &allocation->charge);
    }
    pthread_mutex_unlock(&lock);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_GetMemoryFdKHR(VkDevice handle,
                                                    const VkMemoryGetFdInfoKHR *info, int *fd)
{
    struct layer_device *device = device_of(handle);
    VkResult result = device->next.GetMemoryFdKHR(handle, info, fd);
    struct allocation *allocation;

    if (result != VK_SUCCESS)
        return result;
    allocation = handle_map_find(&device->allocations, (uint64_t)info->memory);
    if (allocation)
        share_allocation(allocation, *fd);
    return VK_SUCCESS;
}
