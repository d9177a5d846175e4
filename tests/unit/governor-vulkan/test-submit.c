// SPDX-License-Identifier: MIT
/* The ways of submission: results are the same, and each is counted or debited and measured. */
#include "gpu.h"

#define ROUNDS 1000

static void submit(struct gpu *gpu, VkCommandBuffer commands, VkFence fence)
{
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &commands,
    };

    VK(vkQueueSubmit(gpu->queue, 1, &info, fence));
}

static void test_free(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkCommandBuffer commands;

    gpu_open(&gpu, NULL);
    member = gpu_member();
    g_assert_nonnull(member);
    commands = gpu_record(&gpu, ROUNDS);
    for (int i = 0; i < 10; i++) {
        submit(&gpu, commands, VK_NULL_HANDLE);
        gpu.expected += gpu_gain(ROUNDS);
    }
    gpu_check(&gpu);
    g_assert_cmpuint(member->counted, ==, 10);
    g_assert_cmpuint(member->begun, ==, 0);
    gpu_close(&gpu);
}

/* Free work with a marker before each: nothing is measured, and the end of each marker is seen. */
static void test_marked(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkCommandBuffer commands;

    gpu_open(&gpu, NULL);
    member = gpu_member();
    member->marks = true;
    commands = gpu_record(&gpu, ROUNDS);
    for (int i = 0; i < 100; i++) {
        submit(&gpu, commands, VK_NULL_HANDLE);
        gpu.expected += gpu_gain(ROUNDS);
        /* Whether the application waits or not. */
        if (i % 10 == 9)
            VK(vkQueueWaitIdle(gpu.queue));
    }
    gpu_check(&gpu);
    g_assert_cmpuint(member->counted, ==, 100);
    g_assert_cmpuint(member->placed, ==, 100);
    g_assert_cmpuint(member->passed, ==, 100);
    g_assert_cmpuint(member->begun, ==, 0);
    /* And from one mode to the other. */
    member->metered = true;
    submit(&gpu, commands, VK_NULL_HANDLE);
    member->metered = false;
    submit(&gpu, commands, VK_NULL_HANDLE);
    gpu.expected += 2 * gpu_gain(ROUNDS);
    gpu_check(&gpu);
    g_assert_cmpuint(member->begun, ==, 1);
    g_assert_cmpuint(member->ended, ==, 1);
    g_assert_cmpuint(member->passed, ==, 101);
    gpu_close_checked(&gpu, member);
}

/* Work that may have waited for a submission without a lease took that long only because of it. */
static void test_passed(void)
{
    struct gpu gpu;
    struct fake_member *member = gpu_open_metered(&gpu, NULL);
    VkCommandBuffer commands = gpu_record(&gpu, 1000000);
    VkFence fence = gpu_fence(&gpu);
    uint64_t unknown = 0;

    for (int i = 0; i < 4; i++) {
        submit(&gpu, commands, fence);
        member->passes += i < 2;
        gpu_wait_fence(&gpu, fence);
        gpu.expected += gpu_gain(1000000);
        VK(vkQueueWaitIdle(gpu.queue));
        unknown = i ? unknown : member->last_estimate_ns;
        /* The third is the first that is learnt from, and the fourth the first that knows it. */
        if (i < 3)
            g_assert_cmpuint(member->last_estimate_ns, ==, unknown);
        else
            g_assert_cmpuint(member->last_estimate_ns, !=, unknown);
    }
    gpu_close_checked(&gpu, member);
}

/* Measured is what the work took on the GPU, not what the host waited. */
static void test_measured(void)
{
    struct gpu gpu;
    struct fake_member *member = gpu_open_metered(&gpu, NULL);
    VkCommandBuffer commands = gpu_record(&gpu, 1000000);
    VkFence fence = gpu_fence(&gpu);
    uint64_t elapsed_ns = 0;

    for (int i = 0; i < 10; i++) {
        gint64 begin = g_get_monotonic_time();

        submit(&gpu, commands, fence);
        gpu_wait_fence(&gpu, fence);
        elapsed_ns += (uint64_t)(g_get_monotonic_time() - begin) * 1000;
        gpu.expected += gpu_gain(1000000);
        g_usleep(10000);
    }
    VK(vkQueueWaitIdle(gpu.queue));
    g_test_message("host %lu us, measured %lu us", (unsigned long)elapsed_ns / 1000,
                   (unsigned long)member->measured_ns / 1000);
    g_assert_cmpuint(member->measured_ns, <=, elapsed_ns);
    g_assert_cmpuint(member->measured_ns, >=, elapsed_ns / 10);
    g_assert_cmpuint(member->begun, ==, 10);
    g_assert_cmpuint(member->ended, ==, 10);
    g_assert_cmpuint(member->counted, ==, 0);
    /* The same command buffer again: the estimate is the measured time. */
    g_assert_cmpuint(member->last_estimate_ns, >, member->measured_ns / 10 / 4);
    vkDestroyFence(gpu.device, fence, NULL);
    gpu_close_checked(&gpu, member);
}

/*
 * By the GPU's clock, which the driver tells in the host's: from when until when it ran. Of known
 * work one in eight is measured, at random, and more while its length varies. On a busy machine
 * this thread sleeps longer than the work takes, but not in each round.
 */
static void test_span(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkCommandBuffer commands;
    VkFence fence;
    uint64_t measured;
    bool is_filled = false;

    g_setenv("VGPU_GOVERNOR_CLOCK", "device", TRUE);
    member = gpu_open_metered(&gpu, NULL);
    commands = gpu_record(&gpu, 1000000);
    fence = gpu_fence(&gpu);
    for (int i = 0; i < 99; i++) {
        uint64_t ran = member->ran;
        uint64_t begin = (uint64_t)g_get_monotonic_time() * 1000, end;

        submit(&gpu, commands, fence);
        gpu_wait_fence(&gpu, fence);
        VK(vkQueueWaitIdle(gpu.queue));
        end = (uint64_t)g_get_monotonic_time() * 1000 + 1000;
        gpu.expected += gpu_gain(1000000);
        if (member->ran == ran)
            continue;
        g_assert_cmpuint(member->last_begin_ns, >=, begin);
        g_assert_cmpuint(member->last_end_ns, <=, end);
        is_filled |= member->last_end_ns - member->last_begin_ns > (end - begin) / 4;
    }
    measured = member->ran;
    g_test_message("%d of %d had times", (int)measured, (int)member->ended);
    g_assert_cmpuint(member->ended, ==, 99);
    g_assert_cmpuint(measured, >=, 2);
    g_assert_true(is_filled);
    g_unsetenv("VGPU_GOVERNOR_CLOCK");
    vkDestroyFence(gpu.device, fence, NULL);
    gpu_close_checked(&gpu, member);
}

/* Submitted at once, executed one after the other: time is not counted twice. */
static void test_no_overlap(void)
{
    struct gpu gpu;
    struct fake_member *member = gpu_open_metered(&gpu, NULL);
    VkCommandBuffer commands = gpu_record(&gpu, 200000);
    gint64 begin = g_get_monotonic_time();
    uint64_t elapsed_ns;

    for (int i = 0; i < 50; i++) {
        submit(&gpu, commands, VK_NULL_HANDLE);
        gpu.expected += gpu_gain(200000);
    }
    VK(vkDeviceWaitIdle(gpu.device));
    elapsed_ns = (uint64_t)(g_get_monotonic_time() - begin) * 1000;
    g_assert_cmpuint(member->measured_ns, <=, elapsed_ns);
    g_assert_cmpuint(member->measured_ns, >=, elapsed_ns / 10);
    gpu_close_checked(&gpu, member);
}

/* Batches with and without command buffers, a fence behind them, more than fit without an
 * allocation. */
static void test_batches(void)
{
    struct gpu gpu;
    struct fake_member *member = gpu_open_metered(&gpu, NULL);
    VkCommandBuffer many[100];
    VkFence fence = gpu_fence(&gpu);
    VkSubmitInfo infos[4] = {
        {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 3, .pCommandBuffers = many},
        {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO},
        {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
         .commandBufferCount = 100,
         .pCommandBuffers = many},
        {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO},
    };

    for (int i = 0; i < 100; i++)
        many[i] = gpu_record(&gpu, ROUNDS);
    VK(vkQueueSubmit(gpu.queue, 4, infos, fence));
    gpu_wait_fence(&gpu, fence);
    gpu.expected = 103 * gpu_gain(ROUNDS);
    VK(vkQueueWaitIdle(gpu.queue));
    g_assert_cmpuint(member->begun, ==, 2);
    /* A fence alone, and nothing at all, are no work. */
    VK(vkQueueSubmit(gpu.queue, 0, NULL, fence));
    gpu_wait_fence(&gpu, fence);
    g_assert_cmpuint(member->begun, ==, 2);
    vkDestroyFence(gpu.device, fence, NULL);
    gpu_close_checked(&gpu, member);
}

static void submit2_by(struct gpu *gpu, PFN_vkQueueSubmit2 submit2, uint32_t commands_count)
{
    VkCommandBufferSubmitInfo commands[40];
    VkSemaphore timeline = gpu_timeline(gpu);
    VkSemaphoreSubmitInfo signal = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
        .semaphore = timeline,
        .value = 1,
        .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
    };
    VkSubmitInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
        .commandBufferInfoCount = commands_count,
        .pCommandBufferInfos = commands,
        .signalSemaphoreInfoCount = 1,
        .pSignalSemaphoreInfos = &signal,
    };
    VkSemaphoreWaitInfo wait = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &timeline,
        .pValues = &signal.value,
    };

    for (uint32_t i = 0; i < commands_count; i++) {
        commands[i] = (VkCommandBufferSubmitInfo){
            .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
            .commandBuffer = gpu_record(gpu, ROUNDS),
        };
    }
    VK(submit2(gpu->queue, 1, &info, VK_NULL_HANDLE));
    VK(vkWaitSemaphores(gpu->device, &wait, UINT64_MAX));
    gpu->expected += commands_count * gpu_gain(ROUNDS);
    VK(vkQueueWaitIdle(gpu->queue));
    vkDestroySemaphore(gpu->device, timeline, NULL);
}

static void test_submit2(void)
{
    static const char *const extensions[] = {VK_KHR_SYNCHRONIZATION_2_EXTENSION_NAME, NULL};
    struct gpu gpu;
    struct fake_member *member =
        gpu_open_metered(&gpu, &(struct gpu_options){.extensions = extensions});

    submit2_by(&gpu, (PFN_vkQueueSubmit2)vkGetDeviceProcAddr(gpu.device, "vkQueueSubmit2"), 1);
    submit2_by(&gpu, (PFN_vkQueueSubmit2)vkGetDeviceProcAddr(gpu.device, "vkQueueSubmit2KHR"), 40);
    submit2_by(&gpu, vkQueueSubmit2, 2);
    g_assert_cmpuint(member->begun, ==, 3);
    member->metered = false;
    submit2_by(&gpu, vkQueueSubmit2, 2);
    g_assert_cmpuint(member->begun, ==, 3);
    g_assert_cmpuint(member->counted, ==, 1);
    gpu_close_checked(&gpu, member);
}

static void test_secondary(void)
{
    struct gpu gpu;
    struct fake_member *member = gpu_open_metered(&gpu, NULL);

    submit(&gpu, gpu_record_in_secondary(&gpu, 100000), VK_NULL_HANDLE);
    gpu.expected += gpu_gain(100000);
    VK(vkQueueWaitIdle(gpu.queue));
    g_assert_cmpuint(member->ended, ==, 1);
    g_assert_cmpuint(member->measured_ns, >, 100000);
    gpu_close_checked(&gpu, member);
}

static void test_bind_sparse(void)
{
    struct gpu gpu;
    struct fake_member *member = gpu_open_metered(&gpu, NULL);
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT,
        .size = 1 << 20,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
    };
    VkFence fence = gpu_fence(&gpu);
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkMemoryRequirements needs;
    VkSparseMemoryBind bind = {0};
    VkSparseBufferMemoryBindInfo of_buffer = {.bindCount = 1, .pBinds = &bind};
    VkBindSparseInfo binds = {
        .sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO,
        .bufferBindCount = 1,
        .pBufferBinds = &of_buffer,
    };

    VK(vkCreateBuffer(gpu.device, &info, NULL, &buffer));
    vkGetBufferMemoryRequirements(gpu.device, buffer, &needs);
    VK(gpu_allocate(&gpu, needs.size, NULL, &memory));
    bind.size = needs.size;
    bind.memory = memory;
    of_buffer.buffer = buffer;
    VK(vkQueueBindSparse(gpu.queue, 1, &binds, fence));
    gpu_wait_fence(&gpu, fence);
    VK(vkQueueWaitIdle(gpu.queue));
    g_assert_cmpuint(member->ended, ==, 1);
    vkDestroyFence(gpu.device, fence, NULL);
    vkDestroyBuffer(gpu.device, buffer, NULL);
    vkFreeMemory(gpu.device, memory, NULL);
    gpu_close_checked(&gpu, member);
}

static void many_tiny(bool metered)
{
    struct gpu gpu;
    struct fake_member *member = gpu_open_metered(&gpu, NULL);
    VkCommandBuffer commands = gpu_record(&gpu, 1);

    member->metered = metered;
    for (int i = 0; i < 10000; i++)
        submit(&gpu, commands, VK_NULL_HANDLE);
    gpu.expected = 10000 * gpu_gain(1);
    gpu_check(&gpu);
    g_assert_cmpuint(member->begun + member->counted, ==, 10000);
    gpu_close_checked(&gpu, member);
}

static void test_many_free(void)
{
    many_tiny(false);
}

static void test_many_metered(void)
{
    many_tiny(true);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gpu_environment();
    g_test_add_func("/submit/free", test_free);
    g_test_add_func("/submit/marked", test_marked);
    g_test_add_func("/submit/measured", test_measured);
    g_test_add_func("/submit/passed", test_passed);
    g_test_add_func("/submit/span", test_span);
    g_test_add_func("/submit/no-overlap", test_no_overlap);
    g_test_add_func("/submit/batches", test_batches);
    g_test_add_func("/submit/submit2", test_submit2);
    g_test_add_func("/submit/secondary", test_secondary);
    g_test_add_func("/submit/bind-sparse", test_bind_sparse);
    g_test_add_func("/submit/many-free", test_many_free);
    g_test_add_func("/submit/many-metered", test_many_metered);
    return g_test_run();
}
