/* SPDX-License-Identifier: MIT */
/*
 * The ways to give work to a queue. Where the slice is free, a submission costs a look-up, an
 * atomic load and a counter. Where it is metered, each is taken apart at its batches, and long
 * batches at their command buffers, so that others need not wait for all of it; order, semaphores
 * and fences stay what they were.
 *
 * Secondary command buffers and commands generated on the device run inside primary ones and are
 * measured with them.
 */
#ifndef GOVERNOR_VULKAN_SUBMIT_H
#define GOVERNOR_VULKAN_SUBMIT_H

#include "meter.h"

/* A batch that is expected to take longer is split between its command buffers. */
#define SUBMIT_SPLIT_NS 1000000u

/* Batches of so many command buffers are wrapped without an allocation. */
#define SUBMIT_INLINE_COMMANDS 30

/* After @slot's submission: the waiter has it from here on, and the application's fence is sent
 * behind it unless the work ends by that. */
VkResult submit_finish(struct layer_queue *queue, struct meter_slot *slot, VkResult submitted,
                       VkFence application);

/* The fence to submit @slot's work with. */
static inline VkFence submit_fence(const struct meter_slot *slot, VkFence application)
{
    return slot ? slot->ends_by : application;
}

/* The queue where what it is given must be measured; NULL: it need not be, and has been counted. */
static inline struct layer_queue *submit_queue(struct layer_device *device, VkQueue handle,
                                               uint32_t count)
{
    struct layer_queue *queue = NULL;

    if (governor_member_is_metered(device->member) && count > 0)
        queue = device_queue(device, handle);
    if (!queue)
        governor_member_count(device->member);
    return queue;
}

/**
 * struct submit_kind - batches as one of the calls has them
 * @size: of a batch
 * @pieces: into how many it is split, 1: not
 * @submit: submits piece @index of so many, with all that it waits for and signals
 */
struct submit_kind {
    size_t size;
    uint32_t (*pieces)(struct layer_queue *queue, const void *batch);
    VkResult (*submit)(struct layer_queue *queue, const void *batch, uint32_t index,
                       uint32_t pieces, VkFence fence);
};

VkResult submit_batches(struct layer_queue *queue, const struct submit_kind *kind,
                        const void *batches, uint32_t count, VkFence fence);

VKAPI_ATTR VkResult VKAPI_CALL layer_QueueSubmit(VkQueue queue, uint32_t count,
                                                 const VkSubmitInfo *submits, VkFence fence);
VKAPI_ATTR VkResult VKAPI_CALL layer_QueueSubmit2(VkQueue queue, uint32_t count,
                                                  const VkSubmitInfo2 *submits, VkFence fence);
VKAPI_ATTR VkResult VKAPI_CALL layer_QueueBindSparse(VkQueue queue, uint32_t count,
                                                     const VkBindSparseInfo *binds, VkFence fence);
VKAPI_ATTR VkResult VKAPI_CALL layer_QueuePresentKHR(VkQueue queue, const VkPresentInfoKHR *info);
VKAPI_ATTR VkResult VKAPI_CALL layer_QueueWaitIdle(VkQueue queue);
VKAPI_ATTR void VKAPI_CALL layer_CmdBeginRendering(VkCommandBuffer commands,
                                                   const VkRenderingInfo *info);

#endif /* GOVERNOR_VULKAN_SUBMIT_H */
