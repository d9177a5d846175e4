/* SPDX-License-Identifier: MIT */
/*
 * The slots of a queue: fences, events, queries and command buffers, created on first use and kept
 * until the device is destroyed.
 */
#ifndef GOVERNOR_VULKAN_SLOT_H
#define GOVERNOR_VULKAN_SLOT_H

#include "layer_state.h"

/*
 * An idle one, or a new one; NULL if there is no memory, or too many are in flight. Under the
 * queue's lock.
 */
struct meter_slot *slot_take(struct layer_queue *queue);

/* Returns it to the idle ones. Under the queue's lock. */
void slot_give(struct layer_queue *queue, struct meter_slot *slot);

void slot_destroy_all(struct layer_queue *queue);

#endif /* GOVERNOR_VULKAN_SLOT_H */
