/* SPDX-License-Identifier: MIT */
/*
 * The end of metered work: what it took is measured and told to the member, and its slot is idle
 * again. By the queue's waiter; or by the application's own thread where it waits for each end, as
 * most do that submit little at a time: a thread that is woken to see the same is lost to the GPU
 * where processors are few.
 */
#ifndef GOVERNOR_VULKAN_RETIRE_H
#define GOVERNOR_VULKAN_RETIRE_H

#include "meter.h"

/* The oldest work: its fence is signalled (@waited VK_SUCCESS), or the device is lost. Under the
 * queue's lock. */
void retire_oldest(struct layer_queue *queue, VkResult waited);

/* @slot's work has begun or ended, and no longer holds up what comes behind it. Under the queue's
 * lock. */
void retire_unstick(struct layer_queue *queue, struct meter_slot *slot);

/* Of the oldest work: VK_SUCCESS where it has ended, VK_NOT_READY, or an error. Under the queue's
 * lock. */
VkResult retire_status(const struct layer_queue *queue);

/* The application has seen something end: all that has, unless the waiter is at it. */
void retire_seen(struct layer_queue *queue);

/* The application is about to submit: what is in flight yet it has not waited for, and it may be
 * held up until that ends. */
void retire_unexpected(struct layer_device *device);

/* The application is about to reset or destroy @fence, so what it was submitted with has ended. */
void retire_fence(struct layer_queue *queue, VkFence fence);

/* Whether the application is going to see the end of @slot's work; NULL: of the next. Under the
 * queue's lock. */
bool retire_is_expected(const struct layer_queue *queue, const struct meter_slot *slot);

/* Whether @slot's work may end by the application's own fence, as it is expected: one submission
 * less. */
bool retire_may_borrow(struct layer_queue *queue, const struct meter_slot *slot);

/* By when (CLOCK_MONOTONIC), or it is not coming. */
uint64_t retire_due_ns(const struct layer_queue *queue);

#endif /* GOVERNOR_VULKAN_RETIRE_H */
