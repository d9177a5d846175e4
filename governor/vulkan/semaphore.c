// SPDX-License-Identifier: MIT
#include "semaphore.h"

#include <stdlib.h>

struct semaphore {
    bool timeline;
    /* Others may signal it: it was imported or exported. */
    _Atomic bool shared;
    /*
     * The value that it reaches by work that has been submitted; binary: 1 until that has been
     * waited for.
     */
    _Atomic uint64_t coming;
};

/* Binary semaphores that stay in this process need no record. */
static struct semaphore *semaphore_record(struct layer_device *device, VkSemaphore handle,
                                          bool timeline)
{
    struct semaphore *record = handle_map_find(&device->semaphores, (uint64_t)handle);

    if (record)
        return record;
    record = calloc(1, sizeof(*record));
    if (!record)
        return NULL;
    record->timeline = timeline;
    if (!handle_map_add(&device->semaphores, (uint64_t)handle, record)) {
        free(record);
        return NULL;
    }
    return record;
}

bool semaphore_is_open(struct layer_device *device, VkSemaphore handle, uint64_t value)
{
    struct semaphore *record = handle_map_find(&device->semaphores, (uint64_t)handle);
    uint64_t reached = 0;

    if (!record)
        return false;
    if (!record->timeline)
        return atomic_load(&record->shared) && !atomic_load(&record->coming);
    if (value <= atomic_load(&record->coming))
        return false;
    return device->next.GetSemaphoreCounterValue(device->handle, handle, &reached) != VK_SUCCESS ||
           reached < value;
}

bool semaphores_open(struct layer_device *device, uint32_t count, const VkSemaphore *semaphores,
                     const uint64_t *values)
{
    for (uint32_t i = 0; i < count; i++) {
        if (semaphore_is_open(device, semaphores[i], values ? values[i] : 0))
            return true;
    }
    return false;
}

void semaphore_will_reach(struct layer_device *device, VkSemaphore handle, uint64_t value)
{
    struct semaphore *record = handle_map_find(&device->semaphores, (uint64_t)handle);
    uint64_t coming;

    if (!record)
        return;
    if (!record->timeline)
        value = 1;
    coming = atomic_load(&record->coming);
    while (coming < value && !atomic_compare_exchange_weak(&record->coming, &coming, value))
        ;
}

void semaphore_was_waited_for(struct layer_device *device, VkSemaphore handle)
{
    struct semaphore *record = handle_map_find(&device->semaphores, (uint64_t)handle);

    if (record && !record->timeline)
        atomic_store(&record->coming, 0);
}

void semaphore_forget(void *record, void *data)
{
    (void)data;
    free(record);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_CreateSemaphore(VkDevice handle,
                                                     const VkSemaphoreCreateInfo *info,
                                                     const VkAllocationCallbacks *allocator,
                                                     VkSemaphore *semaphore)
{
    struct layer_device *device = device_of(handle);
    const VkSemaphoreTypeCreateInfo *type =
        chain_find(info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
    VkResult result = device->next.CreateSemaphore(handle, info, allocator, semaphore);

    if (result != VK_SUCCESS || !type || type->semaphoreType != VK_SEMAPHORE_TYPE_TIMELINE)
        return result;
    if (!semaphore_record(device, *semaphore, true)) {
        device->next.DestroySemaphore(handle, *semaphore, allocator);
        *semaphore = VK_NULL_HANDLE;
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL layer_DestroySemaphore(VkDevice handle, VkSemaphore semaphore,
                                                  const VkAllocationCallbacks *allocator)
{
    struct layer_device *device = device_of(handle);

    free(handle_map_remove(&device->semaphores, (uint64_t)semaphore));
    device->next.DestroySemaphore(handle, semaphore, allocator);
}

static void share_semaphore(struct layer_device *device, VkSemaphore handle)
{
    struct semaphore *record = semaphore_record(device, handle, false);

    if (record)
        atomic_store(&record->shared, true);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_ImportSemaphoreFdKHR(VkDevice handle,
                                                          const VkImportSemaphoreFdInfoKHR *info)
{
    struct layer_device *device = device_of(handle);
    VkResult result = device->next.ImportSemaphoreFdKHR(handle, info);

    if (result == VK_SUCCESS)
        share_semaphore(device, info->semaphore);
    return result;
}

VKAPI_ATTR VkResult VKAPI_CALL layer_GetSemaphoreFdKHR(VkDevice handle,
                                                       const VkSemaphoreGetFdInfoKHR *info, int *fd)
{
    struct layer_device *device = device_of(handle);
    VkResult result = device->next.GetSemaphoreFdKHR(handle, info, fd);

    /* A sync file is a copy of what is pending: it cannot signal the semaphore. */
    if (result == VK_SUCCESS && info->handleType != VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT)
        share_semaphore(device, info->semaphore);
    return result;
}
