// SPDX-License-Identifier: MIT
/*
 * Threads submit to several queues in all ways while the slice changes between free and metered a
 * hundred times a second: every result is right, and every debit ends once.
 */
#include <pthread.h>

#include "gpu.h"

/* This driver has one queue for each device. */
#define QUEUES  3
#define THREADS 3
#define SECONDS 2
#define ROUNDS  200
/* Long enough to be split between command buffers, when it is known. */
#define LONG_ROUNDS 200000

struct target {
    struct gpu gpu;
    pthread_mutex_t lock; /* the application orders its calls on a queue */
    VkSemaphore timeline;
    uint64_t signalled; /* what has been submitted to be */
    VkCommandBuffer tiny, large, secondary;
    guint64 calls;
};

static gint stop;

static void submit(struct target *target, VkFence fence)
{
    VkCommandBuffer commands[] = {target->tiny, target->large, target->secondary};
    uint64_t wait = target->signalled, signal = ++target->signalled;
    VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = 1,
        .pWaitSemaphoreValues = &wait,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &signal,
    };
    VkSubmitInfo infos[2] = {
        {
            .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
            .pNext = &values,
            .waitSemaphoreCount = 1,
            .pWaitSemaphores = &target->timeline,
            .pWaitDstStageMask = &stage,
            .commandBufferCount = G_N_ELEMENTS(commands),
            .pCommandBuffers = commands,
            .signalSemaphoreCount = 1,
            .pSignalSemaphores = &target->timeline,
        },
        {
            .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
            .commandBufferCount = 1,
            .pCommandBuffers = commands,
        },
    };

    VK(vkQueueSubmit(target->gpu.queue, 2, infos, fence));
    target->gpu.expected += 3 * gpu_gain(ROUNDS) + gpu_gain(LONG_ROUNDS);
}

static void submit2(struct target *target, VkFence fence)
{
    VkCommandBufferSubmitInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
        .commandBuffer = target->tiny,
    };
    VkSubmitInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
        .commandBufferInfoCount = 1,
        .pCommandBufferInfos = &commands,
    };

    VK(vkQueueSubmit2(target->gpu.queue, 1, &info, fence));
    target->gpu.expected += gpu_gain(ROUNDS);
}

/* Waits for a value that this thread signals itself, after it has submitted. */
static void wait_before_signal(struct target *target, VkFence fence)
{
    VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    VkSemaphore timeline = gpu_timeline(&target->gpu);
    VkSemaphoreSignalInfo signal = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = timeline, .value = 1};
    VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = 1,
        .pWaitSemaphoreValues = &signal.value,
    };
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .waitSemaphoreCount = 1,
        .pWaitSemaphores = &timeline,
        .pWaitDstStageMask = &stage,
        .commandBufferCount = 1,
        .pCommandBuffers = &target->tiny,
    };

    VK(vkQueueSubmit(target->gpu.queue, 1, &info, fence));
    target->gpu.expected += gpu_gain(ROUNDS);
    VK(vkSignalSemaphore(target->gpu.device, &signal));
    VK(vkWaitForFences(target->gpu.device, 1, &fence, VK_TRUE, UINT64_MAX));
    vkDestroySemaphore(target->gpu.device, timeline, NULL);
}

static gpointer torture(gpointer data)
{
    struct target *target = data;
    VkFence fence = gpu_fence(&target->gpu);
    GRand *random = g_rand_new();
    VkDeviceMemory memory;

    while (!g_atomic_int_get(&stop)) {
        int way = g_rand_int_range(random, 0, 8);

        pthread_mutex_lock(&target->lock);
        target->calls++;
        if (way < 3)
            submit(target, fence);
        else if (way < 6)
            submit2(target, fence);
        else
            wait_before_signal(target, fence);
        if (way == 5)
            VK(vkQueueWaitIdle(target->gpu.queue));
        pthread_mutex_unlock(&target->lock);
        VK(gpu_allocate(&target->gpu, 4096, NULL, &memory));
        gpu_wait_fence(&target->gpu, fence);
        vkFreeMemory(target->gpu.device, memory, NULL);
    }
    g_rand_free(random);
    vkDestroyFence(target->gpu.device, fence, NULL);
    return NULL;
}

static void open_target(struct target *target)
{
    gpu_open(&target->gpu, NULL);
    pthread_mutex_init(&target->lock, NULL);
    target->timeline = gpu_timeline(&target->gpu);
    target->tiny = gpu_record(&target->gpu, ROUNDS);
    target->large = gpu_record(&target->gpu, LONG_ROUNDS);
    target->secondary = gpu_record_in_secondary(&target->gpu, ROUNDS);
}

static void close_target(struct target *target)
{
    vkDestroySemaphore(target->gpu.device, target->timeline, NULL);
    gpu_close(&target->gpu);
    pthread_mutex_destroy(&target->lock);
}

static void test_modes(void)
{
    static struct target targets[QUEUES];
    GThread *threads[QUEUES * THREADS];
    struct fake_member *member;

    for (guint i = 0; i < QUEUES; i++)
        open_target(&targets[i]);
    member = gpu_member();
    g_assert_nonnull(member);
    for (guint i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = g_thread_new("torture", torture, &targets[i % QUEUES]);
    for (guint i = 0; i < SECONDS * 100; i++) {
        member->metered = i % 2;
        g_usleep(10000);
    }
    g_atomic_int_set(&stop, 1);
    for (guint i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
    for (guint i = 0; i < QUEUES; i++) {
        gpu_check(&targets[i].gpu);
        g_test_message("%" G_GUINT64_FORMAT " calls", targets[i].calls);
        g_assert_cmpuint(targets[i].calls, >, 20);
    }
    g_assert_cmpuint(member->begun, >, 0);
    g_assert_cmpuint(member->counted, >, 0);
    g_assert_cmpuint(member->deferred, >, 0);
    g_assert_cmpuint(member->ended + member->cancelled, ==, member->begun);
    g_assert_cmpuint(member->wrong, ==, 0);
    for (guint i = 0; i < QUEUES; i++)
        close_target(&targets[i]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gpu_environment();
    g_test_add_func("/torture/modes", test_modes);
    return g_test_run();
}
