// SPDX-License-Identifier: MIT
/*
 * Who notices the end of work: the application's own thread if it waits for each, otherwise the
 * layer's.
 */
#include "gpu.h"

#define ROUNDS 20000
/* So many are enough for the layer to expect the next. */
#define LOOPS 20
/* The layer looks every 40 ms whether the application still comes; a machine with much else to do
 * gets round to it later. */
#define SOON_US (10 * G_USEC_PER_SEC)
/* Others' part of the time by the host's clock. */
#define OTHERS_NS 20000000u

struct loop {
    struct gpu gpu;
    struct fake_member *member;
    VkCommandBuffer commands;
    VkFence fence;
};

static void submit(struct loop *loop, VkFence fence)
{
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &loop->commands,
    };

    VK(vkQueueSubmit(loop->gpu.queue, 1, &info, fence));
    loop->gpu.expected += gpu_gain(ROUNDS);
}

static void await_ended(const struct loop *loop)
{
    gint64 until = g_get_monotonic_time() + SOON_US;

    while (loop->member->ended < loop->member->begun && g_get_monotonic_time() < until)
        g_usleep(1000);
    g_assert_cmpuint(loop->member->ended, ==, loop->member->begun);
}

/* So often that the next is expected; and whatever was, each end is known soon. */
static void wait_for_each(struct loop *loop)
{
    for (int i = 0; i < LOOPS; i++) {
        submit(loop, loop->fence);
        gpu_wait_fence(&loop->gpu, loop->fence);
        await_ended(loop);
    }
}

static void loop_open(struct loop *loop, const struct gpu_options *options)
{
    loop->member = gpu_open_metered(&loop->gpu, options);
    loop->commands = gpu_record(&loop->gpu, ROUNDS);
    loop->fence = gpu_fence(&loop->gpu);
    wait_for_each(loop);
}

static void loop_close(struct loop *loop)
{
    vkDestroyFence(loop->gpu.device, loop->fence, NULL);
    gpu_close_checked(&loop->gpu, loop->member);
}

static void test_each(void)
{
    struct loop loop;

    loop_open(&loop, NULL);
    for (int i = 0; i < 5; i++)
        wait_for_each(&loop);
    loop_close(&loop);
}

/*
 * On a processor, work behind others' work takes no more than it did before; now and then, and
 * after it took longer, it is measured.
 */
static void test_behind(void)
{
    struct loop loop;
    unsigned no_more = 0, shorter = 0;

    loop_open(&loop, NULL);
    loop.member->behind_ns = 3600000000000;
    for (int i = 0; i < LOOPS; i++) {
        submit(&loop, loop.fence);
        g_usleep(OTHERS_NS / 1000);
        gpu_wait_fence(&loop.gpu, loop.fence);
        await_ended(&loop);
        no_more += loop.member->last_measured_ns <= loop.member->last_estimate_ns;
        shorter += loop.member->last_measured_ns < OTHERS_NS;
    }
    /* On a machine with much else to do the work itself may take as long. */
    g_assert_cmpuint(shorter, >, LOOPS / 2);
    /* By timestamps it is measured each time. */
    if (!g_getenv("VGPU_GOVERNOR_CLOCK"))
        g_assert_cmpuint(no_more, >=, LOOPS / 4);
    loop.member->behind_ns = 0;
    wait_for_each(&loop);
    loop_close(&loop);
}

/* The member asks while a submission waits for its turn; others end what it was behind. */
static void test_still_behind(void)
{
    struct loop loop;

    loop_open(&loop, NULL);
    loop.member->holds_until_beside = true;
    for (unsigned int i = 0; i < LOOPS; i++) {
        submit(&loop, VK_NULL_HANDLE);
        submit(&loop, loop.fence);
        gpu_wait_fence(&loop.gpu, loop.fence);
    }
    g_assert_cmpuint(loop.member->came_beside, >, 0);
    loop.member->holds_until_beside = false;
    await_ended(&loop);
    loop_close(&loop);
}

static uint64_t shortest_ns(struct loop *loop)
{
    uint64_t shortest = UINT64_MAX;

    for (int i = 0; i < 5; i++) {
        submit(loop, loop->fence);
        gpu_wait_fence(&loop->gpu, loop->fence);
        await_ended(loop);
        shortest = MIN(shortest, loop->member->last_measured_ns);
    }
    return shortest;
}

/* What was measured of work that the layer takes for short, in parts of what was before it. */
static double behind_one(struct loop *loop, VkCommandBuffer before)
{
    VkCommandBuffer lengthened = gpu_record(&loop->gpu, 1);
    uint64_t others, sum, last;

    loop->commands = lengthened;
    shortest_ns(loop);
    gpu_record_again(&loop->gpu, lengthened, 20 * ROUNDS);
    loop->commands = before;
    others = shortest_ns(loop) * 9 / 10;
    sum = loop->member->measured_ns;
    submit(loop, loop->fence);
    loop->commands = lengthened;
    loop->member->behind_ns = others;
    submit(loop, VK_NULL_HANDLE);
    /* If the host's clock times work, the end of the first is noticed when it comes. */
    gpu_wait_fence(&loop->gpu, loop->fence);
    await_ended(loop);
    loop->member->behind_ns = 0;
    last = loop->member->last_measured_ns;
    sum = loop->member->measured_ns - sum;
    g_test_message("%.3f ms behind %.3f ms", (double)last / 1e6, (double)(sum - last) / 1e6);
    return (double)last / (double)(sum - last);
}

/*
 * Others' work is waited for once: work behind one's own work that took longer than theirs is
 * charged in full, though it was expected to be short. Both take the same, unless the end of the
 * first is seen late. If theirs were taken off twice, a tenth of the second would be left in four
 * of the rounds; in the others the GPU's clock times it.
 */
static void test_behind_own(void)
{
    VkCommandBuffer before;
    struct loop loop;
    unsigned full = 0;

    loop_open(&loop, NULL);
    before = gpu_record(&loop.gpu, 20 * ROUNDS);
    for (unsigned i = 0; i < 9; i++)
        full += behind_one(&loop, before) > 0.3;
    g_assert_cmpuint(full, >=, 7);
    /* Another test checks the sum: the number of rounds varies here. */
    VK(vkDeviceWaitIdle(loop.gpu.device));
    loop.gpu.expected = loop.gpu.numbers[0];
    loop_close(&loop);
}

/* It does not come for the last one, with a fence or without, and comes again later. */
static void test_stays_away(void)
{
    struct loop loop;

    loop_open(&loop, NULL);
    submit(&loop, loop.fence);
    await_ended(&loop);
    gpu_wait_fence(&loop.gpu, loop.fence);
    wait_for_each(&loop);
    submit(&loop, VK_NULL_HANDLE);
    await_ended(&loop);
    wait_for_each(&loop);
    loop_close(&loop);
}

/* It does not wait before it submits again, though it might be held up until the first ends. */
static void test_queues(void)
{
    struct loop loop;
    VkFence other;

    loop_open(&loop, NULL);
    other = gpu_fence(&loop.gpu);
    submit(&loop, loop.fence);
    submit(&loop, other);
    await_ended(&loop);
    gpu_wait_fence(&loop.gpu, other);
    gpu_wait_fence(&loop.gpu, loop.fence);
    vkDestroyFence(loop.gpu.device, other, NULL);
    loop_close(&loop);
}

/* With a fence that is not queried before it is reused. */
static void submit_and_poll(struct loop *loop, VkFence fence, uint64_t value, VkSemaphore timeline)
{
    VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &value,
    };
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .commandBufferCount = 1,
        .pCommandBuffers = &loop->commands,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &timeline,
    };
    uint64_t reached = 0;

    VK(vkQueueSubmit(loop->gpu.queue, 1, &info, fence));
    loop->gpu.expected += gpu_gain(ROUNDS);
    while (reached < value)
        VK(vkGetSemaphoreCounterValue(loop->gpu.device, timeline, &reached));
    /* The driver signals the fence after the semaphore. */
    g_usleep(500);
}

static void test_used_anew(void)
{
    struct loop loop;
    VkSemaphore timeline;
    VkFence brief;

    loop_open(&loop, NULL);
    timeline = gpu_timeline(&loop.gpu);
    submit_and_poll(&loop, loop.fence, 1, timeline);
    VK(vkResetFences(loop.gpu.device, 1, &loop.fence));
    await_ended(&loop);
    wait_for_each(&loop);
    brief = gpu_fence(&loop.gpu);
    submit_and_poll(&loop, brief, 2, timeline);
    vkDestroyFence(loop.gpu.device, brief, NULL);
    await_ended(&loop);
    vkDestroySemaphore(loop.gpu.device, timeline, NULL);
    loop_close(&loop);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gpu_environment();
    g_test_add_func("/wait/each", test_each);
    g_test_add_func("/wait/behind", test_behind);
    g_test_add_func("/wait/behind-own", test_behind_own);
    g_test_add_func("/wait/still-behind", test_still_behind);
    g_test_add_func("/wait/stays-away", test_stays_away);
    g_test_add_func("/wait/queues", test_queues);
    g_test_add_func("/wait/used-anew", test_used_anew);
    return g_test_run();
}
