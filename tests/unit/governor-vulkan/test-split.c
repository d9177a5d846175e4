// SPDX-License-Identifier: MIT
/* Long batches are split between command buffers, unless something would notice the difference. */
#include "gpu.h"

/* A batch that takes long is taken apart the next time; one whose render passes span command
 * buffers never is. */
static void test_split(void)
{
    struct gpu gpu;
    struct fake_member *member = gpu_open_metered(&gpu, NULL);
    VkSemaphore timeline = gpu_timeline(&gpu);
    uint64_t wait = 0, signal = 1;
    VkCommandBuffer pair[2] = {gpu_record(&gpu, 500000), gpu_record(&gpu, 500000)};
    VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = 1,
        .pWaitSemaphoreValues = &wait,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &signal,
    };
    VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .waitSemaphoreCount = 1,
        .pWaitSemaphores = &timeline,
        .pWaitDstStageMask = &stage,
        .commandBufferCount = 2,
        .pCommandBuffers = pair,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &timeline,
    };
    static const uint64_t begun[] = {1, 3, 5};
    uint64_t reached;

    for (int i = 0; i < 3; i++) {
        wait = (uint64_t)i;
        signal = wait + 1;
        VK(vkQueueSubmit(gpu.queue, 1, &info, VK_NULL_HANDLE));
        VK(vkDeviceWaitIdle(gpu.device));
        VK(vkGetSemaphoreCounterValue(gpu.device, timeline, &reached));
        g_assert_cmpuint(reached, ==, signal);
        gpu.expected += 2 * gpu_gain(500000);
        g_assert_cmpuint(member->begun, ==, begun[i]);
    }
    vkDestroySemaphore(gpu.device, timeline, NULL);
    gpu_close_checked(&gpu, member);
}

static void record_suspending(struct gpu *gpu)
{
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    VkCommandBufferAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = gpu->pool,
        .commandBufferCount = 1,
    };
    VkRenderingInfo rendering = {
        .sType = VK_STRUCTURE_TYPE_RENDERING_INFO,
        .flags = VK_RENDERING_SUSPENDING_BIT,
        .renderArea = {.extent = {1, 1}},
        .layerCount = 1,
    };
    VkCommandBuffer commands;

    VK(vkAllocateCommandBuffers(gpu->device, &allocate, &commands));
    VK(vkBeginCommandBuffer(commands, &begin));
    vkCmdBeginRendering(commands, &rendering);
    vkCmdEndRendering(commands);
    VK(vkEndCommandBuffer(commands));
}

static void test_suspended_passes_not_split(void)
{
    struct gpu gpu;
    struct fake_member *member = gpu_open_metered(&gpu, NULL);
    VkCommandBuffer pair[2] = {gpu_record(&gpu, 500000), gpu_record(&gpu, 500000)};
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 2, .pCommandBuffers = pair};

    record_suspending(&gpu);
    for (int i = 0; i < 3; i++) {
        VK(vkQueueSubmit(gpu.queue, 1, &info, VK_NULL_HANDLE));
        VK(vkDeviceWaitIdle(gpu.device));
        gpu.expected += 2 * gpu_gain(500000);
    }
    g_assert_cmpuint(member->begun, ==, 3);
    gpu_close_checked(&gpu, member);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gpu_environment();
    g_test_add_func("/split/long-batch", test_split);
    g_test_add_func("/split/suspended-passes-not", test_suspended_passes_not_split);
    return g_test_run();
}
