// SPDX-License-Identifier: MIT
/* vkQueueSubmit. */
#include "submit.h"

#include <stdlib.h>

#include "semaphore.h"

struct traits {
    const uint64_t *wait_values, *signal_values;
    bool wrap;
    bool split;
};

/* What the chain of a batch allows. */
static struct traits traits_of(const VkSubmitInfo *batch)
{
    struct traits traits = {.wrap = true, .split = true};

    for (const VkBaseInStructure *in = batch->pNext; in; in = in->pNext) {
        const VkTimelineSemaphoreSubmitInfo *timeline = (const void *)in;

        if (in->sType == VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO) {
            if (timeline->waitSemaphoreValueCount >= batch->waitSemaphoreCount)
                traits.wait_values = timeline->pWaitSemaphoreValues;
            if (timeline->signalSemaphoreValueCount >= batch->signalSemaphoreCount)
                traits.signal_values = timeline->pSignalSemaphoreValues;
            continue;
        }
        traits.split = false;
        /*
         * It has an entry per command buffer; ours are not protected; ours are in no pass of a
         * query.
         */
        if (in->sType == VK_STRUCTURE_TYPE_DEVICE_GROUP_SUBMIT_INFO ||
            in->sType == VK_STRUCTURE_TYPE_PROTECTED_SUBMIT_INFO ||
            in->sType == VK_STRUCTURE_TYPE_PERFORMANCE_QUERY_SUBMIT_INFO_KHR)
            traits.wrap = false;
    }
    return traits;
}

static uint64_t key_of(const VkSubmitInfo *batch)
{
    uint64_t key = 0;

    for (uint32_t i = 0; i < batch->commandBufferCount; i++)
        key = learn_key(key, (uintptr_t)batch->pCommandBuffers[i]);
    return key;
}

static VkResult submit_wrapped(struct layer_queue *queue, const struct meter_slot *slot,
                               const VkSubmitInfo *batch, VkFence fence)
{
    VkCommandBuffer some[SUBMIT_INLINE_COMMANDS + 2];
    VkCommandBuffer *commands = some;
    VkSubmitInfo wrapped = *batch;
    VkResult result;

    if (batch->commandBufferCount > SUBMIT_INLINE_COMMANDS) {
        commands = malloc((batch->commandBufferCount + 2) * sizeof(*commands));
        if (!commands)
            return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    commands[0] = slot->begin;
    for (uint32_t i = 0; i < batch->commandBufferCount; i++)
        commands[i + 1] = batch->pCommandBuffers[i];
    commands[batch->commandBufferCount + 1] = slot->end;
    wrapped.commandBufferCount += 2;
    wrapped.pCommandBuffers = commands;
    result = queue->device->next.QueueSubmit(queue->handle, 1, &wrapped, fence);
    if (commands != some)
        free(commands);
    return result;
}

static void note_semaphores(struct layer_device *device, const VkSubmitInfo *piece,
                            const struct traits *traits, bool deferred)
{
    for (uint32_t i = 0; i < piece->waitSemaphoreCount; i++)
        semaphore_was_waited_for(device, piece->pWaitSemaphores[i]);
    for (uint32_t i = 0; i < piece->signalSemaphoreCount && !deferred; i++)
        semaphore_will_reach(device, piece->pSignalSemaphores[i],
                             traits->signal_values ? traits->signal_values[i] : 0);
}

/* One batch, or a part of one, with all its waits and signals. */
static VkResult submit_piece(struct layer_queue *queue, const VkSubmitInfo *piece,
                             const struct traits *traits, VkFence fence)
{
    struct layer_device *device = queue->device;
    struct meter_work work = {
        .key = key_of(piece),
        .commands = piece->commandBufferCount,
        .wrap = traits->wrap,
        .fence = fence,
        .waits = piece->waitSemaphoreCount > 0,
        .deferred = semaphores_open(device, piece->waitSemaphoreCount, piece->pWaitSemaphores,
                                    traits->wait_values),
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
        result = device->next.QueueSubmit(queue->handle, 1, piece, submit_fence(slot, fence));
    if (result == VK_SUCCESS)
        note_semaphores(device, piece, traits, deferred);
    return submit_finish(queue, slot, result, fence);
}

static uint32_t pieces_of(struct layer_queue *queue, const void *data)
{
    const VkSubmitInfo *batch = data;
    struct traits traits = traits_of(batch);

    if (batch->commandBufferCount > 1 && traits.split &&
        !atomic_load_explicit(&queue->device->suspends, memory_order_relaxed) &&
        meter_estimate(queue, key_of(batch), batch->commandBufferCount) > SUBMIT_SPLIT_NS)
        return batch->commandBufferCount;
    return 1;
}

static VkResult submit_one(struct layer_queue *queue, const void *data, uint32_t index,
                           uint32_t pieces, VkFence fence)
{
    const VkSubmitInfo *batch = data;
    struct traits traits = traits_of(batch);
    VkSubmitInfo piece = *batch;

    if (pieces > 1) {
        piece.commandBufferCount = 1;
        piece.pCommandBuffers = &batch->pCommandBuffers[index];
    }
    /* The waits hold up all that comes later; the signals cover all before. */
    if (index > 0)
        piece.waitSemaphoreCount = 0;
    if (index + 1 < pieces)
        piece.signalSemaphoreCount = 0;
    return submit_piece(queue, &piece, &traits, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_QueueSubmit(VkQueue handle, uint32_t count,
                                                 const VkSubmitInfo *submits, VkFence fence)
{
    static const struct submit_kind kind = {sizeof(VkSubmitInfo), pieces_of, submit_one};
    struct layer_device *device = device_of(handle);
    struct layer_queue *queue = submit_queue(device, handle, count);

    return queue ? submit_batches(queue, &kind, submits, count, fence)
                 : device->next.QueueSubmit(handle, count, submits, fence);
}
