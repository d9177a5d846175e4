// SPDX-License-Identifier: MIT
#include "driver_memory.h"

#include <string.h>

#include "charge.h"
#include "clock.h"

#define LOOK_EVERY_NS (100 * 1000 * 1000ull)
#define VENDOR_AMD    0x1002

/* By Vulkan 1.0's commands, because an instance may not be allowed more. */
bool driver_memory_is_told(const struct layer_instance *instance, VkPhysicalDevice physical)
{
    VkPhysicalDeviceProperties properties;

    instance->next.GetPhysicalDeviceProperties(physical, &properties);
    return properties.vendorID == VENDOR_AMD && strstr(properties.deviceName, "(RADV ") &&
           instance->next.GetPhysicalDeviceMemoryProperties2 &&
           instance_has_extension(instance, physical, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
}

/* One caller of all that come within this time. */
static bool is_time(struct layer_slice *slice)
{
    uint64_t due = atomic_load(&slice->next_look_ns), now = clock_now();

    return now >= due &&
           atomic_compare_exchange_strong(&slice->next_look_ns, &due, now + LOOK_EVERY_NS);
}

/* What the application has requested; spilled memory may be in device memory as well. */
static uint64_t asked_for(const struct layer_device *device)
{
    const VkPhysicalDeviceMemoryProperties *memory = &device->memory;
    uint64_t bytes = memory_spilled(device->slice);

    for (uint32_t i = 0; i < memory->memoryHeapCount; i++)
        bytes += memory_heap_is_local(memory, i) ? memory_heap_usage(device->slice, i) : 0;
    return bytes;
}

/* 0 if the driver reports the impossible. */
static uint64_t in_use(const VkPhysicalDeviceMemoryProperties *memory,
                       const VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < memory->memoryHeapCount; i++) {
        if (!memory_heap_is_local(memory, i))
            continue;
        if (budget->heapUsage[i] > memory->memoryHeaps[i].size)
            return 0;
        bytes += budget->heapUsage[i];
    }
    return bytes;
}

void driver_memory_look_now(struct layer_device *device)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
    uint64_t before, after, used;

    if (!device->driver_tells)
        return;
    /*
     * Allocations are counted before they are made, and uncounted after they are freed: the larger
     * of the two is what the driver may have made for others meanwhile.
     */
    before = asked_for(device);
    device->instance->next.GetPhysicalDeviceMemoryProperties2(device->physical, &properties);
    after = asked_for(device);
    used = in_use(&device->memory, &budget);
    before = before > after ? before : after;
    governor_member_driver(device->member, used > before ? used - before : 0);
}

void driver_memory_look(struct layer_device *device)
{
    if (device->driver_tells && is_time(device->slice))
        driver_memory_look_now(device);
}
