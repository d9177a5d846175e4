// SPDX-License-Identifier: MIT
/*
 * Hard cases, by programs that use Vulkan in processes of their own, with a real arbiter. The
 * driver's time is the processors', so only unmistakable times are asserted here.
 */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"
#include "host.h"

#define MIB    (1024u * 1024u)
#define ROUNDS 100000
#define SECOND G_USEC_PER_SEC

/* What processes tell each other. */
struct shared {
    _Atomic uint64_t value[2];
    _Atomic int stop;
    _Atomic int ready;
};

static struct host host;
static struct shared *shared;

typedef void (*Program)(unsigned number);

/* @program in a process that is a member of @slice; it ends with 0 when that returns. */
static pid_t start(const char *slice, Program program, unsigned number)
{
    pid_t pid = fork();

    g_assert_cmpint(pid, >=, 0);
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* Whoever waits for what never comes is ended. */
    alarm(60);
    host_enter(&host, slice);
    program(number);
    _exit(0);
}

static void await_end(pid_t pid)
{
    int status = 0;

    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(status, ==, 0);
}

static void await_ready(int count)
{
    for (int i = 0; i < 30000 && shared->ready < count; i++)
        g_usleep(1000);
    g_assert_cmpint(shared->ready, ==, count);
}

static void submit(struct gpu *gpu, VkCommandBuffer commands, uint32_t rounds, VkFence fence)
{
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &commands,
    };

    VK(vkQueueSubmit(gpu->queue, 1, &info, fence));
    gpu->expected += gpu_gain(rounds);
}

/* One after the other until it is told to stop. */
static void work(unsigned number)
{
    struct gpu gpu;
    VkCommandBuffer commands;

    (void)number;
    gpu_open(&gpu, NULL);
    commands = gpu_record(&gpu, ROUNDS);
    while (!shared->stop) {
        submit(&gpu, commands, ROUNDS, VK_NULL_HANDLE);
        VK(vkQueueWaitIdle(gpu.queue));
        if (!shared->ready)
            shared->ready = 1;
    }
    gpu_check(&gpu);
    gpu_close(&gpu);
}

#define CYCLES 40

/* Timelines of one process, joined to the other's through memory: this driver exports none. */
struct relay {
    struct gpu *gpu;
    unsigned number;
    VkSemaphore in, out;
};

/* The other's value on ours. */
static gpointer relay_in(gpointer data)
{
    struct relay *relay = data;
    VkSemaphoreSignalInfo signal = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                    .semaphore = relay->in};
    uint64_t last = CYCLES - !relay->number;

    while (signal.value < last) {
        uint64_t value = MIN(shared->value[!relay->number], last);

        if (value == signal.value) {
            g_usleep(100);
            continue;
        }
        signal.value = value;
        VK(vkSignalSemaphore(relay->gpu->device, &signal));
    }
    return NULL;
}

/* Ours for the other. */
static gpointer relay_out(gpointer data)
{
    struct relay *relay = data;

    for (uint64_t value = 1; value <= CYCLES; value++) {
        VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                    .semaphoreCount = 1,
                                    .pSemaphores = &relay->out,
                                    .pValues = &value};

        VK(vkWaitSemaphores(relay->gpu->device, &wait, UINT64_MAX));
        shared->value[relay->number] = value;
    }
    return NULL;
}

static void submit_cycle(struct relay *relay, VkCommandBuffer commands, uint64_t round)
{
    static const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    /* The second answers the first, and the first continues from the second's last answer. */
    uint64_t wait = relay->number ? round : round - 1;
    VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = 1,
        .pWaitSemaphoreValues = &wait,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &round,
    };
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .waitSemaphoreCount = 1,
        .pWaitSemaphores = &relay->in,
        .pWaitDstStageMask = &stage,
        .commandBufferCount = 1,
        .pCommandBuffers = &commands,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &relay->out,
    };

    VK(vkQueueSubmit(relay->gpu->queue, 1, &info, VK_NULL_HANDLE));
    relay->gpu->expected += gpu_gain(ROUNDS);
}

static void cycle(unsigned number)
{
    struct gpu gpu;
    struct relay relay = {.gpu = &gpu, .number = number};
    VkCommandBuffer commands;
    GThread *in, *out;

    gpu_open(&gpu, NULL);
    relay.in = gpu_timeline(&gpu);
    relay.out = gpu_timeline(&gpu);
    commands = gpu_record(&gpu, ROUNDS);
    in = g_thread_new("in", relay_in, &relay);
    out = g_thread_new("out", relay_out, &relay);
    for (uint64_t round = 1; round <= CYCLES; round++) {
        submit_cycle(&relay, commands, round);
        /* Behind what waits, and sometimes a lot at once. */
        submit(&gpu, commands, ROUNDS, VK_NULL_HANDLE);
        if (round % 8 == 0)
            VK(vkQueueWaitIdle(gpu.queue));
    }
    g_thread_join(in);
    g_thread_join(out);
    gpu_check(&gpu);
    vkDestroySemaphore(gpu.device, relay.in, NULL);
    vkDestroySemaphore(gpu.device, relay.out, NULL);
    gpu_close(&gpu);
}

/* Each waits on the GPU for what the other does last, and all three for one lease. */
static void test_cycle(void)
{
    gint64 began;
    pid_t one, other, third;

    *shared = (struct shared){0};
    third = start("b", work, 0);
    await_ready(1);
    began = g_get_monotonic_time();
    one = start("a", cycle, 0);
    other = start("c", cycle, 1);
    await_end(one);
    await_end(other);
    g_test_message("%u rounds in %.2f s", CYCLES,
                   (double)(g_get_monotonic_time() - began) / SECOND);
    shared->stop = 1;
    await_end(third);
}

#define WAITS 4

/* Submits more behind an event than would go out at once, and only then sets it. */
static void set_event_late(unsigned number)
{
    struct gpu gpu;
    VkCommandBuffer commands;
    VkEventCreateInfo info = {.sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};
    VkEvent event;

    (void)number;
    gpu_open(&gpu, NULL);
    VK(vkCreateEvent(gpu.device, &info, NULL, &event));
    commands = gpu_begin(&gpu);
    vkCmdWaitEvents(commands, 1, &event, VK_PIPELINE_STAGE_HOST_BIT,
                    VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, NULL, 0, NULL, 0, NULL);
    VK(vkEndCommandBuffer(commands));
    for (int i = 0; i < WAITS; i++) {
        submit(&gpu, commands, 0, VK_NULL_HANDLE);
        /* What is before it is late by now. */
        g_usleep(2000);
    }
    VK(vkSetEvent(gpu.device, event));
    gpu_check(&gpu);
    vkDestroyEvent(gpu.device, event, NULL);
    gpu_close(&gpu);
}

/* Is there, and has nothing to do. */
static void idle(unsigned number)
{
    struct gpu gpu;

    (void)number;
    gpu_open(&gpu, NULL);
    shared->ready = 1;
    while (!shared->stop)
        g_usleep(1000);
    gpu_close(&gpu);
}

static void test_event(void)
{
    gint64 began;
    pid_t other;

    *shared = (struct shared){0};
    /* Nobody is free if a higher class may interrupt it. */
    other = start("high", idle, 0);
    await_ready(1);
    began = g_get_monotonic_time();
    await_end(start("a", set_event_late, 0));
    g_test_message("%.2f s", (double)(g_get_monotonic_time() - began) / SECOND);
    shared->stop = 1;
    await_end(other);
}

/* The time from which it may be executed, so without its wait for a cap. */
static gint64 time_of(struct gpu *gpu, VkFence fence, uint32_t rounds)
{
    VkCommandBuffer commands = gpu_record(gpu, rounds);
    gint64 began;

    submit(gpu, commands, rounds, fence);
    began = g_get_monotonic_time();
    gpu_wait_fence(gpu, fence);
    return g_get_monotonic_time() - began;
}

/* How many rounds take about @us. */
static uint32_t rounds_for(struct gpu *gpu, VkFence fence, gint64 us)
{
    uint32_t rounds = ROUNDS;
    gint64 took;

    /* The first time it is compiled. */
    time_of(gpu, fence, rounds);
    while ((took = time_of(gpu, fence, rounds)) < us / 20)
        rounds *= 4;
    return (uint32_t)((double)rounds * (double)us / (double)took);
}

/*
 * Work that follows work of a quarter of a second is four times as long later, minus what was saved
 * up. On a busy machine it may come later still; without a cap it comes at once.
 */
static void check_pause(struct gpu *gpu, VkFence fence, VkCommandBuffer tiny)
{
    uint32_t rounds = rounds_for(gpu, fence, SECOND / 4);
    gint64 took, ended, pause;

    /* All is paid for, and something saved. */
    g_usleep(2 * SECOND);
    took = time_of(gpu, fence, rounds);
    ended = g_get_monotonic_time();
    submit(gpu, tiny, 1, fence);
    gpu_wait_fence(gpu, fence);
    pause = g_get_monotonic_time() - ended;
    g_test_message("%.2f s of work, %.2f s of nothing", (double)took / SECOND,
                   (double)pause / SECOND);
    g_assert_cmpint(took, >, SECOND / 16);
    g_assert_cmpint(pause, >, 2 * took);
}

/* Under a cap of 20 %. */
static void one_long(unsigned number)
{
    struct gpu gpu;
    VkFence fence;
    VkCommandBuffer tiny;

    (void)number;
    gpu_open(&gpu, NULL);
    fence = gpu_fence(&gpu);
    tiny = gpu_record(&gpu, 1);
    check_pause(&gpu, fence, tiny);
    vkDestroyFence(gpu.device, fence, NULL);
    gpu_check(&gpu);
    gpu_close(&gpu);
}

static void test_long_dispatch(void)
{
    *shared = (struct shared){0};
    await_end(start("capped", one_long, 0));
}

static VkResult allocate(struct gpu *gpu, VkDeviceSize bytes, VkDeviceMemory *memory)
{
    return gpu_allocate(gpu, bytes, NULL, memory);
}

static VkDeviceSize budget_of(struct gpu *gpu, VkDeviceSize *usage)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};

    vkGetPhysicalDeviceMemoryProperties2(gpu->physical, &properties);
    *usage = budget.heapUsage[0];
    return budget.heapBudget[0];
}

/* The limit is lowered below what is in use: that keeps working, and ends by being freed. */
static void outgrow(unsigned number)
{
    struct gpu gpu;
    VkDeviceMemory half[2], more;
    VkDeviceSize usage = 0;
    void *mapped;

    (void)number;
    gpu_open(&gpu, NULL);
    for (int i = 0; i < 2; i++)
        VK(allocate(&gpu, 24 * MIB, &half[i]));
    host_configure(&host, "memory", "[slice]\nvram=33554432\n");
    for (int i = 0; i < 2000 && budget_of(&gpu, &usage) > 32 * MIB; i++)
        g_usleep(1000);
    g_assert_cmpuint(budget_of(&gpu, &usage), <=, 32 * MIB);
    g_assert_cmpuint(usage, >=, 48 * MIB);
    g_assert_cmpint(allocate(&gpu, MIB, &more), ==, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    VK(vkMapMemory(gpu.device, half[0], 0, VK_WHOLE_SIZE, 0, &mapped));
    memset(mapped, 1, 24 * MIB);
    submit(&gpu, gpu_record(&gpu, ROUNDS), ROUNDS, VK_NULL_HANDLE);
    gpu_check(&gpu);
    vkFreeMemory(gpu.device, half[0], NULL);
    VK(allocate(&gpu, 7 * MIB, &more));
    g_assert_cmpint(allocate(&gpu, 2 * MIB, &half[0]), ==, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    vkFreeMemory(gpu.device, more, NULL);
    vkFreeMemory(gpu.device, half[1], NULL);
    gpu_close(&gpu);
}

static void test_lowered_limit(void)
{
    *shared = (struct shared){0};
    await_end(start("memory", outgrow, 0));
}

int main(int argc, char **argv)
{
    static const char *const slices[] = {"a",      "[slice]\n",
                                         "b",      "[slice]\n",
                                         "c",      "[slice]\n",
                                         "capped", "[slice]\ncap=20\nhard=true\n",
                                         "high",   "[slice]\npriority=1\n",
                                         "memory", "[slice]\nvram=67108864\n",
                                         NULL};
    int failed;

    g_test_init(&argc, &argv, NULL);
    gpu_environment();
    host_up(&host, slices);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_assert_true(shared != MAP_FAILED);
    g_test_add_func("/hard/cycle", test_cycle);
    g_test_add_func("/hard/event", test_event);
    g_test_add_func("/hard/long-dispatch", test_long_dispatch);
    g_test_add_func("/hard/lowered-limit", test_lowered_limit);
    failed = g_test_run();
    host_down(&host);
    return failed;
}
