// SPDX-License-Identifier: MIT
/* The validation layer reports nothing, above the governor and below it, and no hazards. */
#include "gpu.h"

#define VALIDATION "VK_LAYER_KHRONOS_validation"

/* Implicit layers come before those that a program asks for. */
static const char *const below[] = {VALIDATION, NULL};
/* Requested like any other layer, it is at its place in the list. */
static const char *const above[] = {VALIDATION, "VK_LAYER_VGPU_governor", NULL};

static void submit_split(struct gpu *gpu, VkSemaphore timeline, uint64_t value, VkFence fence)
{
    VkCommandBuffer commands[2] = {gpu_record(gpu, 300000), gpu_record(gpu, 300000)};
    uint64_t before = value - 1;
    VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = 1,
        .pWaitSemaphoreValues = &before,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &value,
    };
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .waitSemaphoreCount = 1,
        .pWaitSemaphores = &timeline,
        .pWaitDstStageMask = &stage,
        .commandBufferCount = 2,
        .pCommandBuffers = commands,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &timeline,
    };

    VK(vkQueueSubmit(gpu->queue, 1, &info, fence));
    gpu->expected += 2 * gpu_gain(300000);
}

static void submit2(struct gpu *gpu)
{
    VkCommandBufferSubmitInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
        .commandBuffer = gpu_record_in_secondary(gpu, 1000),
    };
    VkSubmitInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
        .commandBufferInfoCount = 1,
        .pCommandBufferInfos = &commands,
    };

    VK(vkQueueSubmit2(gpu->queue, 1, &info, VK_NULL_HANDLE));
    gpu->expected += gpu_gain(1000);
}

static void run(const char *const *layers)
{
    struct gpu gpu;
    struct fake_member *member;
    VkSemaphore timeline;
    VkFence fence;

    gpu_open(&gpu, &(struct gpu_options){.layers = layers});
    member = gpu_member();
    g_assert_nonnull(member);
    g_assert_true(gpu_is_of_layer(vkGetDeviceProcAddr(gpu.device, "vkQueueSubmit")) ==
                  (layers == below));
    timeline = gpu_timeline(&gpu);
    fence = gpu_fence(&gpu);
    for (int metered = 0; metered < 2; metered++) {
        member->metered = metered;
        for (uint64_t i = 0; i < 40; i++) {
            submit_split(&gpu, timeline, 1 + i + 40 * (uint64_t)metered, fence);
            submit2(&gpu);
            gpu_wait_fence(&gpu, fence);
        }
    }
    gpu_check(&gpu);
    g_assert_cmpuint(member->begun, >, 80);
    vkDestroySemaphore(gpu.device, timeline, NULL);
    vkDestroyFence(gpu.device, fence, NULL);
    gpu_close(&gpu);
    g_assert_cmpuint(gpu.complaints, ==, 0);
}

static void test_above(void)
{
    g_setenv("VGPU_GOVERNOR", "0", TRUE);
    g_setenv("VK_LAYER_PATH", LAYER_DIR ":/usr/share/vulkan/explicit_layer.d", TRUE);
    run(above);
    g_unsetenv("VK_LAYER_PATH");
    g_setenv("VGPU_GOVERNOR", "1", TRUE);
}

static void test_below(void)
{
    run(below);
}

/* The layer asks GPUs for their addresses, which Vulkan 1.0 can do by an extension only. */
static void test_old_instance(void)
{
    g_autofree char *slices = g_dir_make_tmp(NULL, NULL);
    g_autofree char *slice = g_build_filename(slices, "soft:a", "a", NULL);
    g_autofree char *socket = g_build_filename(slice, "governor.sock", NULL);
    struct gpu gpu;

    g_assert_cmpint(g_mkdir_with_parents(slice, 0700), ==, 0);
    g_assert_true(g_file_set_contents(socket, "", 0, NULL));
    g_setenv("VGPU_GOVERNOR_SLICES", slices, TRUE);
    gpu_open(&gpu, &(struct gpu_options){.layers = below, .api_version = VK_API_VERSION_1_0});
    gpu_close(&gpu);
    g_unsetenv("VGPU_GOVERNOR_SLICES");
    g_assert_cmpuint(gpu.complaints, ==, 0);
}

/* The test can fail: an error is noticed. */
static void test_complains(void)
{
    struct gpu gpu;
    VkFenceCreateInfo wrong = {.sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};
    VkFence fence;

    gpu_open(&gpu, &(struct gpu_options){.layers = below});
    VK(vkCreateFence(gpu.device, &wrong, NULL, &fence));
    vkDestroyFence(gpu.device, fence, NULL);
    gpu_close(&gpu);
    g_assert_cmpuint(gpu.complaints, >, 0);
}

/* Hazards are looked for too: of two writes without a barrier between them, in two submissions. */
static void test_complains_of_hazards(void)
{
    struct gpu gpu;
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = 256,
        .usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT,
    };
    VkMemoryRequirements needs;
    VkDeviceMemory memory;
    VkBuffer buffer;
    VkCommandBuffer commands;
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .commandBufferCount = 1,
                           .pCommandBuffers = &commands};

    gpu_open(&gpu, &(struct gpu_options){.layers = below});
    VK(vkCreateBuffer(gpu.device, &info, NULL, &buffer));
    vkGetBufferMemoryRequirements(gpu.device, buffer, &needs);
    VK(gpu_allocate(&gpu, needs.size, NULL, &memory));
    VK(vkBindBufferMemory(gpu.device, buffer, memory, 0));
    commands = gpu_begin(&gpu);
    vkCmdFillBuffer(commands, buffer, 0, VK_WHOLE_SIZE, 1);
    VK(vkEndCommandBuffer(commands));
    gpu.complaints = 0;
    for (int i = 0; i < 2; i++)
        VK(vkQueueSubmit(gpu.queue, 1, &submit, VK_NULL_HANDLE));
    VK(vkDeviceWaitIdle(gpu.device));
    g_assert_cmpuint(gpu.complaints, >, 0);
    vkDestroyBuffer(gpu.device, buffer, NULL);
    vkFreeMemory(gpu.device, memory, NULL);
    gpu_close(&gpu);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gpu_environment();
    g_test_add_func("/validation/complains", test_complains);
    g_test_add_func("/validation/complains-of-hazards", test_complains_of_hazards);
    g_test_add_func("/validation/above", test_above);
    g_test_add_func("/validation/below", test_below);
    g_test_add_func("/validation/old-instance", test_old_instance);
    return g_test_run();
}
