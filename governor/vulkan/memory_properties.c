// SPDX-License-Identifier: MIT
/* Heaps and budgets, as if the slice were the card. Without a limit they are the driver's. */
#include "memory.h"
#include "physical.h"

#include <sys/param.h>

/* For a GPU that it may not use, a process gets the driver's values. */
static uint64_t limit_of(const struct layer_slice *slice, uint64_t *used)
{
    uint64_t limit = 0;

    if (slice)
        governor_member_memory(slice->member, &limit, used);
    return limit;
}

static void limit_heaps(VkPhysicalDeviceMemoryProperties *memory, uint64_t limit)
{
    for (uint32_t i = 0; i < memory->memoryHeapCount; i++) {
        if (memory_heap_is_local(memory, i))
            memory->memoryHeaps[i].size = MIN(memory->memoryHeaps[i].size, limit);
    }
}

/*
 * As VK_EXT_memory_budget defines it: usage is this process's, budget is what it could have in all.
 * That is what it has plus what its slice has left; never 0, never more than the heap.
 */
static void limit_budget(const VkPhysicalDeviceMemoryProperties *memory,
                         VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget,
                         const struct layer_slice *slice, uint64_t limit, uint64_t used)
{
    uint64_t left = limit > used ? limit - used : 0;

    for (uint32_t i = 0; i < memory->memoryHeapCount; i++) {
        uint64_t mine, most;

        if (!memory_heap_is_local(memory, i))
            continue;
        mine = memory_heap_usage(slice, i);
        most = MIN(mine + left, memory->memoryHeaps[i].size);
        budget->heapUsage[i] = mine;
        budget->heapBudget[i] = MIN(budget->heapBudget[i], most ? most : 1);
    }
}

VKAPI_ATTR void VKAPI_CALL layer_GetPhysicalDeviceMemoryProperties(
    VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties *properties)
{
    struct layer_instance *instance = instance_of(physical);
    uint64_t used = 0;
    uint64_t limit = limit_of(physical_slice(instance, physical), &used);

    instance->next.GetPhysicalDeviceMemoryProperties(physical, properties);
    if (limit)
        limit_heaps(properties, limit);
}

VKAPI_ATTR void VKAPI_CALL layer_GetPhysicalDeviceMemoryProperties2(
    VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties2 *properties)
{
    struct layer_instance *instance = instance_of(physical);
    const VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget = chain_find(
        properties->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
    const struct layer_slice *slice = physical_slice(instance, physical);
    uint64_t used = 0;
    uint64_t limit = limit_of(slice, &used);

    instance->next.GetPhysicalDeviceMemoryProperties2(physical, properties);
    if (!limit)
        return;
    limit_heaps(&properties->memoryProperties, limit);
    if (budget) {
        /*
         * The chain is the application's and is to be written; only the search takes it as
         * constant.
         */
        limit_budget(&properties->memoryProperties,
                     (VkPhysicalDeviceMemoryBudgetPropertiesEXT *)budget, slice, limit, used);
    }
}
