/* SPDX-License-Identifier: MIT */
/*
 * Debited and measured work: one submission to the driver. Command buffers of ours that were
 * recorded once write timestamps before and after it; a fence says when they can be read.
 *
 * If a queue has no timestamps, or the work may not be next to command buffers of ours, the host's
 * clock is read when the fence is seen. The same applies if timestamps would be of that clock, too
 * (the GPU is a processor, which would write them instead of working), unless the work waits for
 * semaphores: the start is unknown then. If it waits for others' work, only one in some has
 * timestamps. The rest is measured by what is known of the work, and of what it waits for.
 *
 * Used in the application's own calls on a queue, so by one thread at a time for one queue.
 */
#ifndef GOVERNOR_VULKAN_METER_H
#define GOVERNOR_VULKAN_METER_H

#include "layer_state.h"

/* The estimated cost of work that starts now; see learn.h. */
uint64_t meter_estimate(struct layer_queue *queue, uint64_t key, uint32_t commands);

/*
 * Waits for the slice's turn and debits @work. NULL: there is no slot for it, and it is not to be
 * submitted. Its work.wrap says whether to put begin and end around it.
 */
struct meter_slot *meter_begin(struct layer_queue *queue, const struct meter_work *work);

/* It was submitted, with the fence that it ends by. The queue owns the slot from here on. */
void meter_submitted(struct layer_queue *queue, struct meter_slot *slot);

/* @slot's fence was submitted as a marker. The queue owns the slot from here on. */
void meter_marker(struct layer_queue *queue, struct meter_slot *slot, uint64_t marker);

/* It was not submitted. */
void meter_cancel(struct layer_queue *queue, struct meter_slot *slot);

/* Waits until all submitted work has been accounted for. The driver must be idle. */
void meter_drain(struct layer_queue *queue);

void meter_queue_init(struct layer_queue *queue);

/* Drains, ends the thread, destroys what was created. */
void meter_queue_destroy(struct layer_queue *queue);

#endif /* GOVERNOR_VULKAN_METER_H */
