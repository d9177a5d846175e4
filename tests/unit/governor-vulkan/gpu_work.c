// SPDX-License-Identifier: MIT
/* Work for gpu.h, and its expected results. */
#include "gpu.h"

static VkCommandBuffer allocate_commands(struct gpu *gpu, VkCommandBufferLevel level)
{
    VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = gpu->pool,
        .level = level,
        .commandBufferCount = 1,
    };
    VkCommandBuffer commands;

    VK(vkAllocateCommandBuffers(gpu->device, &info, &commands));
    return commands;
}

/* Each dispatch adds to what the one before it has left. */
static void record_spin(struct gpu *gpu, VkCommandBuffer commands, uint32_t rounds)
{
    VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
        .dstAccessMask =
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_HOST_READ_BIT,
    };

    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, gpu->pipeline);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, gpu->layout, 0, 1, &gpu->set,
                            0, NULL);
    vkCmdPushConstants(commands, gpu->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(rounds),
                       &rounds);
    vkCmdDispatch(commands, 1, 1, 1);
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                         VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                         &barrier, 0, NULL, 0, NULL);
}

VkCommandBuffer gpu_begin(struct gpu *gpu)
{
    VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT,
    };
    VkCommandBuffer commands = allocate_commands(gpu, VK_COMMAND_BUFFER_LEVEL_PRIMARY);

    VK(vkBeginCommandBuffer(commands, &begin));
    return commands;
}

VkCommandBuffer gpu_record(struct gpu *gpu, uint32_t rounds)
{
    VkCommandBuffer commands = gpu_begin(gpu);

    record_spin(gpu, commands, rounds);
    VK(vkEndCommandBuffer(commands));
    return commands;
}

void gpu_record_again(struct gpu *gpu, VkCommandBuffer commands, uint32_t rounds)
{
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};

    VK(vkBeginCommandBuffer(commands, &begin));
    record_spin(gpu, commands, rounds);
    VK(vkEndCommandBuffer(commands));
}

VkCommandBuffer gpu_record_in_secondary(struct gpu *gpu, uint32_t rounds)
{
    VkCommandBufferInheritanceInfo inherits = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO};
    VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT,
        .pInheritanceInfo = &inherits,
    };
    VkCommandBuffer inner = allocate_commands(gpu, VK_COMMAND_BUFFER_LEVEL_SECONDARY);
    VkCommandBuffer outer = allocate_commands(gpu, VK_COMMAND_BUFFER_LEVEL_PRIMARY);

    VK(vkBeginCommandBuffer(inner, &begin));
    record_spin(gpu, inner, rounds);
    VK(vkEndCommandBuffer(inner));
    begin.pInheritanceInfo = NULL;
    VK(vkBeginCommandBuffer(outer, &begin));
    vkCmdExecuteCommands(outer, 1, &inner);
    VK(vkEndCommandBuffer(outer));
    return outer;
}

uint32_t gpu_gain(uint32_t rounds)
{
    uint32_t number = 0;

    for (uint32_t i = 0; i < rounds; i++)
        number = number * 1664525u + 1013904223u;
    return number;
}

VkSemaphore gpu_timeline(struct gpu *gpu)
{
    VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    VkSemaphoreCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
        .pNext = &type,
    };
    VkSemaphore semaphore;

    VK(vkCreateSemaphore(gpu->device, &info, NULL, &semaphore));
    return semaphore;
}

VkFence gpu_fence(struct gpu *gpu)
{
    VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence fence;

    VK(vkCreateFence(gpu->device, &info, NULL, &fence));
    return fence;
}

void gpu_wait_fence(struct gpu *gpu, VkFence fence)
{
    VK(vkWaitForFences(gpu->device, 1, &fence, VK_TRUE, 60 * G_GUINT64_CONSTANT(1000000000)));
    VK(vkResetFences(gpu->device, 1, &fence));
}

void gpu_check(struct gpu *gpu)
{
    VK(vkDeviceWaitIdle(gpu->device));
    g_assert_cmpuint(gpu->numbers[0], ==, gpu->expected);
}

struct fake_member *gpu_open_metered(struct gpu *gpu, const struct gpu_options *options)
{
    struct fake_member *member;

    gpu_open(gpu, options);
    member = gpu_member();
    g_assert_nonnull(member);
    member->metered = true;
    return member;
}

void gpu_close_checked(struct gpu *gpu, struct fake_member *member)
{
    gpu_check(gpu);
    g_assert_cmpuint(member->ended + member->cancelled, ==, member->begun);
    g_assert_cmpuint(member->wrong, ==, 0);
    gpu_close(gpu);
}
