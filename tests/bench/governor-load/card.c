/* SPDX-License-Identifier: MIT */
#include "card.h"

#include "fma.spv.h"

/* One workgroup: what takes time is the loop, not the number of its elements. */
#define ELEMENTS        64u
#define TIMEOUT_SECONDS 300u

static void create_fences(struct card *card)
{
    VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};

    for (uint32_t i = 0; i < card->depth; i++)
        vk_check(&card->job, vkCreateFence(card->dev.device, &info, NULL, &card->fences[i]),
                 "vkCreateFence");
}

void card_open(struct card *card, const char *program, const char *device_name, uint32_t depth)
{
    const struct vk_buffer *buffers[] = {&card->data};

    *card = (struct card){
        .job = {.program = program, .device_name = device_name, .timeout = TIMEOUT_SECONDS},
        .depth = depth,
    };
    vk_device_open(&card->dev, &card->job);
    vk_dispatch_create(&card->dev, 1, 1, sizeof(uint32_t), &card->dispatch);
    vk_buffer_create(&card->dev, ELEMENTS * sizeof(float), VK_PLACE_DEVICE, &card->data);
    vk_kernel_create(&card->dev, &card->dispatch, fma_spirv, sizeof(fma_spirv), buffers,
                     &card->kernel);
    create_fences(card);
}

void card_close(struct card *card)
{
    vk_check(&card->job, vkDeviceWaitIdle(card->dev.device), "vkDeviceWaitIdle");
    for (uint32_t i = 0; i < card->depth; i++)
        vkDestroyFence(card->dev.device, card->fences[i], NULL);
    vk_kernel_destroy(&card->dev, &card->kernel);
    vk_buffer_destroy(&card->dev, &card->data);
    vk_dispatch_destroy(&card->dev, &card->dispatch);
    vk_device_close(&card->dev);
}

/* Batches of one queue may overlap; the barrier makes each wait for the one before. */
static void wait_for_last(VkCommandBuffer cmd)
{
    VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT,
    };

    vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                         VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &memory, 0, NULL, 0, NULL);
}

void card_set_work(struct card *card, uint32_t iterations)
{
    VkCommandBuffer cmd = card->dispatch.cmd;
    VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT,
    };

    vk_check(&card->job, vkBeginCommandBuffer(cmd, &begin), "vkBeginCommandBuffer");
    wait_for_last(cmd);
    vkCmdPushConstants(cmd, card->dispatch.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                       sizeof(iterations), &iterations);
    vkCmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, card->kernel.pipeline);
    vkCmdBindDescriptorSets(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, card->dispatch.layout, 0, 1,
                            &card->kernel.set, 0, NULL);
    vkCmdDispatch(cmd, 1, 1, 1);
    vk_check(&card->job, vkEndCommandBuffer(cmd), "vkEndCommandBuffer");
}

static void submit_work(struct card *card, VkFence fence)
{
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &card->dispatch.cmd,
    };

    vk_check(&card->job, vkQueueSubmit(card->dev.queue, 1, &info, fence), "vkQueueSubmit");
}

void card_submit(struct card *card, uint32_t slot)
{
    submit_work(card, card->fences[slot]);
}

void card_submit_silent(struct card *card)
{
    submit_work(card, VK_NULL_HANDLE);
}

bool card_wait(struct card *card, uint32_t slot, uint64_t timeout_ns)
{
    VkFence *fence = &card->fences[slot];
    VkResult result = vkWaitForFences(card->dev.device, 1, fence, VK_TRUE, timeout_ns);

    if (result == VK_TIMEOUT)
        return false;
    vk_check(&card->job, result, "vkWaitForFences");
    vk_check(&card->job, vkResetFences(card->dev.device, 1, fence), "vkResetFences");
    return true;
}
