// SPDX-License-Identifier: MIT
/* vkQueueSubmit2 and vkQueueSubmit2KHR, like submit.c. */
#include "submit.h"

#include <stdlib.h>

#include "semaphore.h"

static bool may_split(const struct layer_queue *queue, const VkSubmitInfo2 *batch)
{
    return !batch->pNext && batch->commandBufferInfoCount > 1 &&
           !atomic_load_explicit(&queue->device->suspends, memory_order_relaxed);
}

static bool may_wrap(const struct layer_queue *queue, const VkSubmitInfo2 *batch)
{
    return !(batch->flags & VK_SUBMIT_PROTECTED_BIT) && queue->device->physical_devices == 1 &&
           !chain_find(batch->pNext, VK_STRUCTURE_TYPE_PERFORMANCE_QUERY_SUBMIT_INFO_KHR);
}

static uint64_t key_of(const VkSubmitInfo2 *batch)
{
    uint64_t key = 0;

    for (uint32_t i = 0; i < batch->commandBufferInfoCount; i++)
        key = learn_key(key, (uintptr_t)batch->pCommandBufferInfos[i].commandBuffer);
    return key;
}

static bool waits_are_open(struct layer_device *device, const VkSubmitInfo2 *batch)
{
    for (uint32_t i = 0; i < batch->waitSemaphoreInfoCount; i++) {
        const VkSemaphoreSubmitInfo *wait = &batch->pWaitSemaphoreInfos[i];

        if (semaphore_is_open(device, wait->semaphore, wait->value))
            return true;
    }
    return false;
}

static VkResult submit_wrapped(struct layer_queue *queue, const struct meter_slot *slot,
                               const VkSubmitInfo2 *batch, VkFence fence)
{
    VkCommandBufferSubmitInfo some[SUBMIT_INLINE_COMMANDS + 2];
    VkCommandBufferSubmitInfo *commands = some;
    VkCommandBufferSubmitInfo ours = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO};
    VkSubmitInfo2 wrapped = *batch;
    VkResult result;

    if (batch->commandBufferInfoCount > SUBMIT_INLINE_COMMANDS) {
        commands = malloc((batch->commandBufferInfoCount + 2) * sizeof(*commands));
        if (!commands)
            return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    ours.commandBuffer = slot->begin;
    commands[0] = ours;
    for (uint32_t i = 0; i < batch->commandBufferInfoCount; i++)
        commands[i + 1] = batch->pCommandBufferInfos[i];
    ours.commandBuffer = slot->end;
    commands[batch->commandBufferInfoCount + 1] = ours;
    wrapped.commandBufferInfoCount += 2;
    wrapped.pCommandBufferInfos = commands;
    result = queue->device->next.QueueSubmit2(queue->handle, 1, &wrapped, fence);
    if (commands != some)
        free(commands);
    return result;
}

static void note_semaphores(struct layer_device *device, const VkSubmitInfo2 *piece, bool deferred)
{
    for (uint32_t i = 0; i < piece->waitSemaphoreInfoCount; i++)
        semaphore_was_waited_for(device, piece->pWaitSemaphoreInfos[i].semaphore);
    for (uint32_t i = 0; i < piece->signalSemaphoreInfoCount && !deferred; i++)
        semaphore_will_reach(device, piece->pSignalSemaphoreInfos[i].semaphore,
                             piece->pSignalSemaphoreInfos[i].value);
}

static VkResult submit_piece(struct layer_queue *queue, const VkSubmitInfo2 *piece, VkFence fence)
{
    struct layer_device *device = queue->device;
    struct meter_work work = {
        .key = key_of(piece),
        .commands = piece->commandBufferInfoCount,
        .wrap = may_wrap(queue, piece),
        .fence = fence,
        .waits = piece->waitSemaphoreInfoCount > 0,
        .deferred = waits_are_open(device, piece),
    };
    struct meter_slot *slot = NULL;
    bool deferred = work.deferred;
    VkResult result;

    if (work.commands)
        slot = meter_begin(queue, &work);
    if (work.commands && !slot)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    if (slot)
        deferred = slot->work.deferred;
    if (slot && slot->work.wrap)
        result = submit_wrapped(queue, slot, piece, submit_fence(slot, fence));
    else
        result = device->next.QueueSubmit2(queue->handle, 1, piece, submit_fence(slot, fence));
    if (result == VK_SUCCESS)
        note_semaphores(device, piece, deferred);
    return submit_finish(queue, slot, result, fence);
}

static uint32_t pieces_of(struct layer_queue *queue, const void *data)
{
    const VkSubmitInfo2 *batch = data;

    if (may_split(queue, batch) &&
        meter_estimate(queue, key_of(batch), batch->commandBufferInfoCount) > SUBMIT_SPLIT_NS)
        return batch->commandBufferInfoCount;
    return 1;
}

static VkResult submit_one(struct layer_queue *queue, const void *data, uint32_t index,
                           uint32_t pieces, VkFence fence)
{
    const VkSubmitInfo2 *batch = data;
    VkSubmitInfo2 piece = *batch;

    if (pieces > 1) {
        piece.commandBufferInfoCount = 1;
        piece.pCommandBufferInfos = &batch->pCommandBufferInfos[index];
    }
    if (index > 0)
        piece.waitSemaphoreInfoCount = 0;
    if (index + 1 < pieces)
        piece.signalSemaphoreInfoCount = 0;
    return submit_piece(queue, &piece, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_QueueSubmit2(VkQueue handle, uint32_t count,
                                                  const VkSubmitInfo2 *submits, VkFence fence)
{
    static const struct submit_kind kind = {sizeof(VkSubmitInfo2), pieces_of, submit_one};
    struct layer_device *device = device_of(handle);
    struct layer_queue *queue = submit_queue(device, handle, count);

    return queue ? submit_batches(queue, &kind, submits, count, fence)
                 : device->next.QueueSubmit2(handle, count, submits, fence);
}
