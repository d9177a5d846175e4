/* SPDX-License-Identifier: MIT */
/*
 * The end of metered work: its time is measured and reported to the member, and its slot becomes
 * idle. The queue's waiter does this. If the application waits for each end, as most do that submit
 * little at a time, its own thread does: waking a second thread for the same would cost the GPU
 * time if processors are few.
 */
#ifndef GOVERNOR_VULKAN_RETIRE_H
#define GOVERNOR_VULKAN_RETIRE_H

#include "layer_state.h"

/*
 * The oldest work: its fence is signalled (@waited VK_SUCCESS), or the device is lost. Under the
 * queue's lock.
 */
void retire_oldest(struct layer_queue *queue, VkResult waited);

/*
 * @slot's work has begun or ended, and no longer delays the work behind it. Under the queue's lock.
 */
void retire_unstick(struct layer_queue *queue, struct meter_slot *slot);

/*
 * Of the oldest work: VK_SUCCESS if it has ended, VK_NOT_READY, or an error. Under the queue's
 * lock.
 */
VkResult retire_status(const struct layer_queue *queue);

/* The application has seen an end: retires all ended work, except what the waiter waits for. */
void retire_seen(struct layer_queue *queue);

/*
 * The application is about to submit, to this or another queue. It has not waited for the work that
 * is still in flight, and may be held up until that ends. True if the waiter is to be woken, best
 * without the lock. Under the queue's lock.
 */
bool retire_unexpected(struct layer_queue *queue);

/* The application is about to reset or destroy @fence, so what it was submitted with has ended. */
void retire_fence(struct layer_queue *queue, VkFence fence);

/*
 * Whether the application will see the end of @slot's work; NULL: of the next. Under the queue's
 * lock.
 */
bool retire_is_expected(const struct layer_queue *queue, const struct meter_slot *slot);

/*
 * Whether @slot's work may end by the application's own fence, because that is expected: it saves a
 * submission.
 */
bool retire_may_borrow(struct layer_queue *queue, const struct meter_slot *slot);

/* The time (CLOCK_MONOTONIC) by which it must come, or it is not coming. */
uint64_t retire_due_ns(const struct layer_queue *queue);

#endif /* GOVERNOR_VULKAN_RETIRE_H */
