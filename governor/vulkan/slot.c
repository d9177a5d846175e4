// SPDX-License-Identifier: MIT
#include "slot.h"

#include <stdlib.h>

#include "results.h"

/* Limit of work in flight; the rest waits. */
#define MOST_SLOTS 4096

/*
 * Both timestamps are at the bottom of the pipe: the first is written when the work before has
 * ended, so that no time is counted twice.
 */
static bool record_begin(struct layer_queue *queue, const struct slot_chunk *chunk, uint32_t index)
{
    const struct device_dispatch *next = &queue->device->next;
    const struct meter_slot *slot = &chunk->slots[index];
    VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    uint32_t query = index * SLOT_TICKS;

    if (next->BeginCommandBuffer(slot->begin, &info) != VK_SUCCESS)
        return false;
    next->CmdResetQueryPool(slot->begin, chunk->queries, query, SLOT_TICKS);
    next->CmdWriteTimestamp(slot->begin, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, chunk->queries,
                            query);
    next->CmdSetEvent(slot->begin, slot->begun, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT);
    return next->EndCommandBuffer(slot->begin) == VK_SUCCESS;
}

static bool record_end(struct layer_queue *queue, const struct slot_chunk *chunk, uint32_t index)
{
    const struct device_dispatch *next = &queue->device->next;
    const struct meter_slot *slot = &chunk->slots[index];
    VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    uint32_t query = index * SLOT_TICKS;
    VkBufferMemoryBarrier written = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_HOST_READ_BIT,
        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .buffer = chunk->results,
        .offset = query * sizeof(uint64_t),
        .size = SLOT_TICKS * sizeof(uint64_t),
    };

    if (next->BeginCommandBuffer(slot->end, &info) != VK_SUCCESS)
        return false;
    next->CmdWriteTimestamp(slot->end, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, chunk->queries,
                            query + 1);
    next->CmdCopyQueryPoolResults(slot->end, chunk->queries, query, SLOT_TICKS, chunk->results,
                                  written.offset, sizeof(uint64_t),
                                  VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    next->CmdPipelineBarrier(slot->end, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                             0, 0, NULL, 1, &written, 0, NULL);
    return next->EndCommandBuffer(slot->end) == VK_SUCCESS;
}

static bool create_commands(struct layer_queue *queue)
{
    struct layer_device *device = queue->device;
    VkCommandPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .queueFamilyIndex = queue->family,
    };

    if (queue->commands)
        return true;
    return device->next.CreateCommandPool(device->handle, &info, NULL, &queue->commands) ==
           VK_SUCCESS;
}

/* What @index's slot needs for the GPU's timestamps. */
static bool prepare_slot(struct layer_queue *queue, struct slot_chunk *chunk, uint32_t index,
                         const VkCommandBuffer *buffers, const uint64_t *words)
{
    struct layer_device *device = queue->device;
    struct meter_slot *slot = &chunk->slots[index];
    VkEventCreateInfo event = {.sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};

    slot->begin = buffers[2 * index];
    slot->end = buffers[2 * index + 1];
    slot->ticks = &words[index * SLOT_TICKS];
    return device->set_loader_data(device->handle, slot->begin) == VK_SUCCESS &&
           device->set_loader_data(device->handle, slot->end) == VK_SUCCESS &&
           device->next.CreateEvent(device->handle, &event, NULL, &slot->begun) == VK_SUCCESS &&
           record_begin(queue, chunk, index) && record_end(queue, chunk, index);
}

static bool add_timestamps(struct layer_queue *queue, struct slot_chunk *chunk)
{
    struct layer_device *device = queue->device;
    VkCommandBuffer buffers[SLOTS_IN_CHUNK * 2];
    uint64_t *words;
    VkQueryPoolCreateInfo queries = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = SLOTS_IN_CHUNK * SLOT_TICKS,
    };
    VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = SLOTS_IN_CHUNK * 2,
    };

    if (!create_commands(queue) ||
        device->next.CreateQueryPool(device->handle, &queries, NULL, &chunk->queries) !=
            VK_SUCCESS ||
        !results_create(device, SLOTS_IN_CHUNK * SLOT_TICKS, &chunk->results, &chunk->memory,
                        &words))
        return false;
    commands.commandPool = queue->commands;
    if (device->next.AllocateCommandBuffers(device->handle, &commands, buffers) != VK_SUCCESS)
        return false;
    for (uint32_t i = 0; i < SLOTS_IN_CHUNK; i++) {
        if (!prepare_slot(queue, chunk, i, buffers, words))
            return false;
    }
    return true;
}

static bool add_fences(struct layer_device *device, struct slot_chunk *chunk)
{
    VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};

    for (uint32_t i = 0; i < SLOTS_IN_CHUNK; i++) {
        if (device->next.CreateFence(device->handle, &info, NULL, &chunk->slots[i].fence) !=
            VK_SUCCESS)
            return false;
    }
    return true;
}

static void chunk_destroy(struct layer_device *device, struct slot_chunk *chunk)
{
    for (uint32_t i = 0; i < SLOTS_IN_CHUNK; i++) {
        device->next.DestroyFence(device->handle, chunk->slots[i].fence, NULL);
        device->next.DestroyEvent(device->handle, chunk->slots[i].begun, NULL);
    }
    device->next.DestroyQueryPool(device->handle, chunk->queries, NULL);
    results_destroy(device, chunk->results, chunk->memory);
    free(chunk);
}

static struct slot_chunk *chunk_create(struct layer_queue *queue)
{
    struct slot_chunk *chunk = calloc(1, sizeof(*chunk));

    if (!chunk)
        return NULL;
    if (add_fences(queue->device, chunk) && (!queue->ticks.bits || add_timestamps(queue, chunk)))
        return chunk;
    /* Command buffers are freed with the queue's pool. */
    chunk_destroy(queue->device, chunk);
    return NULL;
}

struct meter_slot *slot_take(struct layer_queue *queue)
{
    struct meter_slot *slot;

    if (!queue->idle && queue->slots < MOST_SLOTS) {
        struct slot_chunk *chunk = chunk_create(queue);

        if (chunk) {
            chunk->next = queue->chunks;
            queue->chunks = chunk;
            queue->slots += SLOTS_IN_CHUNK;
            for (uint32_t i = 0; i < SLOTS_IN_CHUNK; i++)
                slot_give(queue, &chunk->slots[i]);
        }
    }
    slot = queue->idle;
    if (slot)
        queue->idle = slot->next;
    return slot;
}

void slot_give(struct layer_queue *queue, struct meter_slot *slot)
{
    slot->next = queue->idle;
    queue->idle = slot;
}

void slot_destroy_all(struct layer_queue *queue)
{
    struct layer_device *device = queue->device;

    while (queue->chunks) {
        struct slot_chunk *chunk = queue->chunks;

        queue->chunks = chunk->next;
        chunk_destroy(device, chunk);
    }
    device->next.DestroyCommandPool(device->handle, queue->commands, NULL);
}
