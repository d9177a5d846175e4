// SPDX-License-Identifier: MIT
/* Other work of a queue than command buffers, and what all kinds of submission share. */
#include "submit.h"

#include "semaphore.h"

/* Estimates of binding and presenting are separate from those of command buffers. */
#define KEY_BIND    0x62696e64u
#define KEY_PRESENT 0x70726573u

/*
 * Presenting may copy an image on the queue. It may also wait for the display, which takes nothing
 * from others and is not charged.
 */
#define PRESENT_MOST_NS 1000000u

VkResult submit_finish(struct layer_queue *queue, struct meter_slot *slot, VkResult submitted,
                       VkFence application)
{
    const struct device_dispatch *next = &queue->device->next;
    bool also;

    if (!slot)
        return submitted;
    if (submitted != VK_SUCCESS) {
        meter_cancel(queue, slot);
        return submitted;
    }
    also = application && application != slot->ends_by;
    meter_submitted(queue, slot);
    /*
     * After our own fence: the end must be seen before the application has more to do. After an
     * error the application may assume that nothing was submitted.
     */
    if (also && next->QueueSubmit(queue->handle, 0, NULL, application) != VK_SUCCESS)
        return VK_ERROR_DEVICE_LOST;
    return VK_SUCCESS;
}

VkResult submit_batches(struct layer_queue *queue, const struct submit_kind *kind,
                        const void *batches, uint32_t count, VkFence fence)
{
    bool submitted = false;

    for (uint32_t i = 0; i < count; i++) {
        const void *batch = (const char *)batches + i * kind->size;
        uint32_t pieces = kind->pieces(queue, batch);

        for (uint32_t k = 0; k < pieces; k++) {
            bool last = i + 1 == count && k + 1 == pieces;
            VkResult result = kind->submit(queue, batch, k, pieces, last ? fence : VK_NULL_HANDLE);

            /* Its own error would mean that nothing happened, which is no longer true. */
            if (result != VK_SUCCESS)
                return submitted ? VK_ERROR_DEVICE_LOST : result;
            submitted = true;
        }
    }
    return VK_SUCCESS;
}

static bool bind_waits_are_open(struct layer_device *device, const VkBindSparseInfo *bind)
{
    const VkTimelineSemaphoreSubmitInfo *timeline =
        chain_find(bind->pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
    bool has_values = timeline && timeline->waitSemaphoreValueCount >= bind->waitSemaphoreCount;

    return semaphores_open(device, bind->waitSemaphoreCount, bind->pWaitSemaphores,
                           has_values ? timeline->pWaitSemaphoreValues : NULL);
}

static void note_semaphores(struct layer_device *device, const VkBindSparseInfo *bind,
                            bool deferred)
{
    const VkTimelineSemaphoreSubmitInfo *timeline =
        chain_find(bind->pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
    bool has_values = timeline && timeline->signalSemaphoreValueCount >= bind->signalSemaphoreCount;

    for (uint32_t i = 0; i < bind->waitSemaphoreCount; i++)
        semaphore_was_waited_for(device, bind->pWaitSemaphores[i]);
    for (uint32_t i = 0; i < bind->signalSemaphoreCount && !deferred; i++)
        semaphore_will_reach(device, bind->pSignalSemaphores[i],
                             has_values ? timeline->pSignalSemaphoreValues[i] : 0);
}

static VkResult bind_metered(struct layer_queue *queue, uint32_t count,
                             const VkBindSparseInfo *binds, VkFence fence)
{
    struct layer_device *device = queue->device;
    struct meter_work work = {.key = KEY_BIND, .commands = count};
    struct meter_slot *slot;
    VkResult result;

    for (uint32_t i = 0; i < count && !work.deferred; i++)
        work.deferred = bind_waits_are_open(device, &binds[i]);
    slot = meter_begin(queue, &work);
    if (!slot)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    result = device->next.QueueBindSparse(queue->handle, count, binds, submit_fence(slot, fence));
    for (uint32_t i = 0; i < count && result == VK_SUCCESS; i++)
        note_semaphores(device, &binds[i], slot->work.deferred);
    return submit_finish(queue, slot, result, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_QueueBindSparse(VkQueue handle, uint32_t count,
                                                     const VkBindSparseInfo *binds, VkFence fence)
{
    struct layer_device *device = device_of(handle);
    struct layer_queue *queue = submit_queue(device, handle, count);

    return queue ? bind_metered(queue, count, binds, fence)
                 : device->next.QueueBindSparse(handle, count, binds, fence);
}

static VkResult present_metered(struct layer_queue *queue, const VkPresentInfoKHR *info)
{
    struct layer_device *device = queue->device;
    struct meter_work work = {
        .key = KEY_PRESENT,
        .commands = 1,
        .deferred = semaphores_open(device, info->waitSemaphoreCount, info->pWaitSemaphores, NULL),
        .most_ns = PRESENT_MOST_NS,
    };
    struct meter_slot *slot = meter_begin(queue, &work);
    VkResult result = device->next.QueuePresentKHR(queue->handle, info);

    for (uint32_t i = 0; i < info->waitSemaphoreCount; i++)
        semaphore_was_waited_for(device, info->pWaitSemaphores[i]);
    if (!slot)
        return result;
    /* Whatever the result for the images, the queue may have worked for it. */
    if (device->next.QueueSubmit(queue->handle, 0, NULL, slot->fence) == VK_SUCCESS)
        meter_submitted(queue, slot);
    else
        meter_cancel(queue, slot);
    return result;
}

VKAPI_ATTR VkResult VKAPI_CALL layer_QueuePresentKHR(VkQueue handle, const VkPresentInfoKHR *info)
{
    struct layer_device *device = device_of(handle);
    struct layer_queue *queue = submit_queue(device, handle, 1);

    return queue ? present_metered(queue, info) : device->next.QueuePresentKHR(handle, info);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_QueueWaitIdle(VkQueue handle)
{
    struct layer_device *device = device_of(handle);
    struct layer_queue *queue = device_queue(device, handle);
    VkResult result = device->next.QueueWaitIdle(handle);

    if (queue && (result == VK_SUCCESS || result == VK_ERROR_DEVICE_LOST))
        meter_drain(queue);
    return result;
}

VKAPI_ATTR void VKAPI_CALL layer_CmdBeginRendering(VkCommandBuffer commands,
                                                   const VkRenderingInfo *info)
{
    struct layer_device *device = device_of(commands);

    if (info->flags & (VK_RENDERING_SUSPENDING_BIT | VK_RENDERING_RESUMING_BIT))
        atomic_store_explicit(&device->suspends, true, memory_order_relaxed);
    device->next.CmdBeginRendering(commands, info);
}
