/* SPDX-License-Identifier: MIT */
/*
 * The slots of a queue: fences, events, queries and command buffers, created when they are first
 * needed and kept until the device goes.
 */
#ifndef GOVERNOR_VULKAN_SLOT_H
#define GOVERNOR_VULKAN_SLOT_H

#include "meter.h"

/* Slots that share a pool of queries and the buffer that results are copied to. */
#define SLOTS_IN_CHUNK 32
#define SLOT_TICKS     2 /* begin and end */

struct slot_chunk {
    struct slot_chunk *next;
    VkQueryPool queries;
    VkBuffer results;
    VkDeviceMemory memory;
    struct meter_slot slots[SLOTS_IN_CHUNK];
};

/* One that is idle, or a new one; NULL where there is no memory, or too many are in flight. */
struct meter_slot *slot_take(struct layer_queue *queue);

/* Back among the idle ones. Under the queue's lock. */
void slot_give(struct layer_queue *queue, struct meter_slot *slot);

void slot_destroy_all(struct layer_queue *queue);

#endif /* GOVERNOR_VULKAN_SLOT_H */
