// SPDX-License-Identifier: MIT
/* Work that waits for something unsignalled is deferred, and nothing else is. */
#include <unistd.h>

#include "gpu.h"

#define ROUNDS 1000

struct order {
    VkSemaphore wait;
    uint64_t wait_value;
    VkSemaphore signal;
    uint64_t signal_value;
};

static void submit(struct gpu *gpu, VkCommandBuffer commands, const struct order *order)
{
    static const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = order->wait ? 1 : 0,
        .pWaitSemaphoreValues = &order->wait_value,
        .signalSemaphoreValueCount = order->signal ? 1 : 0,
        .pSignalSemaphoreValues = &order->signal_value,
    };
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .waitSemaphoreCount = order->wait ? 1 : 0,
        .pWaitSemaphores = &order->wait,
        .pWaitDstStageMask = &stage,
        .commandBufferCount = 1,
        .pCommandBuffers = &commands,
        .signalSemaphoreCount = order->signal ? 1 : 0,
        .pSignalSemaphores = &order->signal,
    };

    VK(vkQueueSubmit(gpu->queue, 1, &info, VK_NULL_HANDLE));
}

static void signal_from_host(struct gpu *gpu, VkSemaphore semaphore, uint64_t value)
{
    VkSemaphoreSignalInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
        .semaphore = semaphore,
        .value = value,
    };

    VK(vkSignalSemaphore(gpu->device, &info));
}

/* By the thread that would be waiting for a lease: submits twice behind a wait, then signals. */
static void test_wait_before_signal(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkSemaphore timeline;
    VkCommandBuffer commands;
    uint64_t warm_ns;

    gpu_open(&gpu, NULL);
    member = gpu_member();
    member->metered = true;
    timeline = gpu_timeline(&gpu);
    commands = gpu_record(&gpu, ROUNDS);
    /* The driver compiles work that is executed for the first time. */
    submit(&gpu, commands, &(struct order){0});
    VK(vkDeviceWaitIdle(gpu.device));
    warm_ns = member->measured_ns;
    submit(&gpu, commands, &(struct order){.wait = timeline, .wait_value = 5});
    g_assert_cmpuint(member->deferred, ==, 1);
    /* It waits for nothing itself, but is behind waiting work on the queue. */
    submit(&gpu, commands, &(struct order){0});
    g_assert_cmpuint(member->deferred, ==, 2);
    g_usleep(500000);
    g_assert_cmpuint(member->stalled, >, 1);
    g_assert_cmpuint(member->ended, ==, 1);
    signal_from_host(&gpu, timeline, 5);
    gpu.expected = 3 * gpu_gain(ROUNDS);
    gpu_check(&gpu);
    g_assert_cmpuint(member->ended, ==, 3);
    /* The time of waiting is not the GPU's. */
    g_assert_cmpuint(member->measured_ns - warm_ns, <, 250000000);
    /* All is as before. */
    submit(&gpu, commands, &(struct order){.wait = timeline, .wait_value = 5});
    g_assert_cmpuint(member->deferred, ==, 2);
    VK(vkDeviceWaitIdle(gpu.device));
    vkDestroySemaphore(gpu.device, timeline, NULL);
    gpu_close(&gpu);
}

/*
 * Work that waited and has begun is in flight before it ends: a process that is killed then is
 * charged for it.
 */
static void test_begun(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkSemaphore timeline;
    VkCommandBuffer commands;
    uint64_t ended, executing;

    gpu_open(&gpu, NULL);
    member = gpu_member();
    member->metered = true;
    timeline = gpu_timeline(&gpu);
    commands = gpu_record(&gpu, 20000 * ROUNDS);
    submit(&gpu, commands, &(struct order){0});
    VK(vkDeviceWaitIdle(gpu.device));
    /* The driver may have compiled it for so long that it was considered stalled. */
    executing = member->executing;
    ended = member->ended;
    submit(&gpu, commands, &(struct order){.wait = timeline, .wait_value = 1});
    g_usleep(20000);
    g_assert_cmpuint(member->executing, ==, executing);
    signal_from_host(&gpu, timeline, 1);
    while (member->executing == executing)
        g_assert_cmpuint(member->ended, ==, ended);
    VK(vkDeviceWaitIdle(gpu.device));
    g_assert_cmpuint(member->executing, ==, executing + 1);
    g_assert_cmpuint(member->ended, ==, ended + 1);
    g_assert_cmpuint(member->wrong, ==, 0);
    vkDestroySemaphore(gpu.device, timeline, NULL);
    gpu_close(&gpu);
}

#define BEHIND 40

/* What comes behind a wait is deferred no longer than that lasts, though there is always more
 * behind it. */
static void test_behind(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkSemaphore timeline, ended;
    VkCommandBuffer commands;

    gpu_open(&gpu, NULL);
    member = gpu_member();
    member->metered = true;
    timeline = gpu_timeline(&gpu);
    ended = gpu_timeline(&gpu);
    commands = gpu_record(&gpu, 100 * ROUNDS);
    submit(&gpu, commands, &(struct order){.signal = ended, .signal_value = 1});
    VK(vkDeviceWaitIdle(gpu.device));
    submit(&gpu, commands, &(struct order){timeline, 1, ended, 2});
    for (uint64_t i = 3; i < BEHIND; i++) {
        VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                    .semaphoreCount = 1,
                                    .pSemaphores = &ended,
                                    .pValues = &(uint64_t){i - 1}};

        submit(&gpu, commands, &(struct order){.signal = ended, .signal_value = i});
        if (i == 3)
            signal_from_host(&gpu, timeline, 1);
        VK(vkWaitSemaphores(gpu.device, &wait, UINT64_MAX));
    }
    VK(vkDeviceWaitIdle(gpu.device));
    g_test_message("%u of %d deferred", (unsigned)member->deferred, BEHIND);
    g_assert_cmpuint(member->deferred, >=, 2);
    g_assert_cmpuint(member->deferred, <, BEHIND / 4);
    vkDestroySemaphore(gpu.device, timeline, NULL);
    vkDestroySemaphore(gpu.device, ended, NULL);
    gpu_close(&gpu);
}

/* Long work has not stalled, however often its slot was used before; what waits has. */
static void test_long_is_not_stalled(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkSemaphore timeline;
    VkCommandBuffer commands;
    unsigned before;

    gpu_open(&gpu, NULL);
    member = gpu_member();
    member->metered = true;
    timeline = gpu_timeline(&gpu);
    commands = gpu_record(&gpu, 3000000);
    for (int i = 0; i < 20; i++) {
        submit(&gpu, commands, &(struct order){0});
        VK(vkDeviceWaitIdle(gpu.device));
    }
    /* On a machine with much else to do one or the other may be late to begin. */
    before = member->stalled;
    g_assert_cmpuint(before, <, 10);
    submit(&gpu, commands, &(struct order){.wait = timeline, .wait_value = 1});
    g_usleep(500000);
    /* Said again and again, while it lasts. */
    g_assert_cmpuint(member->stalled, >, before + 1);
    signal_from_host(&gpu, timeline, 1);
    VK(vkDeviceWaitIdle(gpu.device));
    before = member->stalled;
    g_usleep(100000);
    g_assert_cmpuint(member->stalled, ==, before);
    vkDestroySemaphore(gpu.device, timeline, NULL);
    gpu_close(&gpu);
}

/* What the process itself has submitted will come: a chain of work is no way round the lease. */
static void test_chain_is_not_deferred(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkSemaphore timeline;
    VkCommandBuffer commands;

    gpu_open(&gpu, NULL);
    member = gpu_member();
    member->metered = true;
    timeline = gpu_timeline(&gpu);
    commands = gpu_record(&gpu, 1000000);
    for (uint64_t i = 0; i < 5; i++) {
        submit(&gpu, commands, &(struct order){timeline, i, timeline, i + 1});
        gpu.expected += gpu_gain(1000000);
    }
    g_assert_cmpuint(member->deferred, ==, 0);
    gpu_check(&gpu);
    vkDestroySemaphore(gpu.device, timeline, NULL);
    gpu_close(&gpu);
}

static VkSemaphore exportable(struct gpu *gpu)
{
    VkExportSemaphoreCreateInfo export = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO,
        .handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
    };
    VkSemaphoreCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
        .pNext = &export,
    };
    VkSemaphore semaphore;

    VK(vkCreateSemaphore(gpu->device, &info, NULL, &semaphore));
    return semaphore;
}

/* A binary semaphore is deferred only where somebody else may signal it, and we have not. */
static void test_binary(void)
{
    static const char *const extensions[] = {VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME, NULL};
    struct gpu gpu;
    struct fake_member *member;
    VkSemaphoreCreateInfo plain = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    VkSemaphore local;
    VkCommandBuffer commands;
    uint32_t count = 64;
    VkExtensionProperties known[512];
    bool external = false;

    gpu_open(&gpu, NULL);
    count = G_N_ELEMENTS(known);
    VK(vkEnumerateDeviceExtensionProperties(gpu.physical, NULL, &count, known));
    for (uint32_t i = 0; i < count; i++)
        external |= g_str_equal(known[i].extensionName, extensions[0]);
    if (external) {
        gpu_close(&gpu);
        gpu_open(&gpu, &(struct gpu_options){.extensions = extensions});
    }
    member = gpu_member();
    member->metered = true;
    commands = gpu_record(&gpu, ROUNDS);
    VK(vkCreateSemaphore(gpu.device, &plain, NULL, &local));
    submit(&gpu, commands, &(struct order){.signal = local});
    submit(&gpu, commands, &(struct order){.wait = local});
    g_assert_cmpuint(member->deferred, ==, 0);
    if (external) {
        VkSemaphore shared = exportable(&gpu);
        VkSemaphoreGetFdInfoKHR get = {
            .sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR,
            .semaphore = shared,
            .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
        };
        PFN_vkGetSemaphoreFdKHR get_fd =
            (PFN_vkGetSemaphoreFdKHR)vkGetDeviceProcAddr(gpu.device, "vkGetSemaphoreFdKHR");
        int fd;

        VK(get_fd(gpu.device, &get, &fd));
        close(fd);
        submit(&gpu, commands, &(struct order){.signal = shared});
        submit(&gpu, commands, &(struct order){.wait = shared});
        g_assert_cmpuint(member->deferred, ==, 0);
        VK(vkDeviceWaitIdle(gpu.device));
        vkDestroySemaphore(gpu.device, shared, NULL);
    } else {
        g_test_message("%s is not there: exported semaphores are not tested", extensions[0]);
    }
    VK(vkDeviceWaitIdle(gpu.device));
    vkDestroySemaphore(gpu.device, local, NULL);
    gpu_close(&gpu);
}

struct signaller {
    struct gpu *gpu;
    VkSemaphore semaphore;
};

static gpointer signal_later(gpointer data)
{
    struct signaller *signaller = data;

    g_usleep(30000);
    signal_from_host(signaller->gpu, signaller->semaphore, 1);
    return NULL;
}

/* Signalled by another thread of the process. */
static void test_signalled_by_thread(void)
{
    struct gpu gpu;
    struct signaller signaller = {&gpu, NULL};
    struct fake_member *member;
    GThread *thread;

    gpu_open(&gpu, NULL);
    member = gpu_member();
    member->metered = true;
    signaller.semaphore = gpu_timeline(&gpu);
    thread = g_thread_new("signals", signal_later, &signaller);
    submit(&gpu, gpu_record(&gpu, ROUNDS), &(struct order){signaller.semaphore, 1, NULL, 0});
    gpu.expected = gpu_gain(ROUNDS);
    gpu_check(&gpu);
    g_thread_join(thread);
    g_assert_cmpuint(member->deferred, ==, 1);
    g_assert_cmpuint(member->ended, ==, 1);
    vkDestroySemaphore(gpu.device, signaller.semaphore, NULL);
    gpu_close(&gpu);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gpu_environment();
    g_test_add_func("/semaphore/wait-before-signal", test_wait_before_signal);
    g_test_add_func("/semaphore/begun", test_begun);
    g_test_add_func("/semaphore/behind", test_behind);
    g_test_add_func("/semaphore/long-is-not-stalled", test_long_is_not_stalled);
    g_test_add_func("/semaphore/chain-is-not-deferred", test_chain_is_not_deferred);
    g_test_add_func("/semaphore/binary", test_binary);
    g_test_add_func("/semaphore/signalled-by-thread", test_signalled_by_thread);
    return g_test_run();
}
