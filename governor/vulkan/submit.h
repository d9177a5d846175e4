/* SPDX-License-Identifier: MIT */
/*
 * The ways to submit work to a queue. If the slice is free, a submission costs a look-up, an atomic
 * load and a counter. If it is metered, each submission is split at its batches, and long batches
 * at their command buffers, so that others need not wait for all of it. Order, semaphores and
 * fences stay the same.
 *
 * Secondary command buffers and commands generated on the device run inside primary ones and are
 * measured with them.
 */
#ifndef GOVERNOR_VULKAN_SUBMIT_H
#define GOVERNOR_VULKAN_SUBMIT_H

#include "meter.h"

/* A batch that is expected to take longer is split between its command buffers. */
#define SUBMIT_SPLIT_NS 1000000u

/* Batches of up to this many command buffers are wrapped without an allocation. */
#define SUBMIT_INLINE_COMMANDS 30

/*
 * After @slot's submission: the waiter owns it from here on, and the application's fence is
 * submitted behind it unless the work ends by that fence.
 */
VkResult submit_finish(struct layer_queue *queue, struct meter_slot *slot, VkResult submitted,
                       VkFence application);

/* The fence of the submission of @slot's work. */
static inline VkFence submit_fence(const struct meter_slot *slot, VkFence application)
{
    return slot ? slot->ends_by : application;
}

/* Of a queue of a device whose queues differ. */
enum governor_class submit_class(struct layer_device *device, VkQueue handle);

/*
 * The way of submissions that are not simply free: the queue, if its work must be measured; NULL:
 * it need not be, and has been counted.
 */
struct layer_queue *submit_not_free(struct layer_device *device, VkQueue handle, uint32_t count,
                                    enum governor_pass pass);

/* The queue, if its work must be measured. NULL: it need not be, and has been counted. */
static inline struct layer_queue *submit_queue(struct layer_device *device, VkQueue handle,
                                               uint32_t count)
{
    enum governor_class class = device->class;
    enum governor_pass pass;

    if (__builtin_expect(device->has_classes, 0))
        class = submit_class(device, handle);
    pass = governor_member_pass(device->member, class);
    if (__builtin_expect(pass == GOVERNOR_PASS_FREE, 1))
        return NULL;
    return submit_not_free(device, handle, count, pass);
}

/**
 * struct submit_kind - batches in the form of one of the calls
 * @size: of a batch
 * @pieces: number of pieces that it is split into, 1: not split
 * @submit: submits piece @index of that many, with all its waits and signals
 */
struct submit_kind {
    size_t size;
    uint32_t (*pieces)(struct layer_queue *queue, const void *batch);
    VkResult (*submit)(struct layer_queue *queue, const void *batch, uint32_t index,
                       uint32_t pieces, VkFence fence);
};

VkResult submit_batches(struct layer_queue *queue, const struct submit_kind *kind,
                        const void *batches, uint32_t count, VkFence fence);

LAYER_COMMAND(QueueSubmit);
LAYER_COMMAND(QueueSubmit2);
LAYER_COMMAND(QueueBindSparse);
LAYER_COMMAND(QueuePresentKHR);
LAYER_COMMAND(QueueWaitIdle);
LAYER_COMMAND(CmdBeginRendering);

#endif /* GOVERNOR_VULKAN_SUBMIT_H */
