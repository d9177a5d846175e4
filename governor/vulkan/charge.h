/* SPDX-License-Identifier: MIT */
/* What memory costs the slice, and how much of it this process uses in each heap. */
#ifndef GOVERNOR_VULKAN_CHARGE_H
#define GOVERNOR_VULKAN_CHARGE_H

#include "layer_state.h"

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

#endif /* GOVERNOR_VULKAN_CHARGE_H */
