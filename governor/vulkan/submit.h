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

/* What to put behind @slot's submission: the slot's own fence, unless the application's went along
 * with it. */
VkResult submit_finish(struct layer_queue *queue, struct meter_slot *slot, VkResult submitted,
                       VkFence application);

/* The fence to submit @slot's work with. */
static inline VkFence submit_fence(const struct meter_slot *slot, VkFence application)
{
    return application || !slot ? application : slot->fence;
}

/* For a call that failed after parts of it had been submitted. */
static inline VkResult submit_failed(VkResult result, bool parts_submitted)
{
    /* An error must mean that nothing happened, and that is no longer true. */
    return parts_submitted ? VK_ERROR_DEVICE_LOST : result;
}

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
