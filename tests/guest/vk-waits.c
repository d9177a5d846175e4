/* SPDX-License-Identifier: MIT */
/*
 * Work of which the end is heard in each way that there is: by a fence, a timeline semaphore, an
 * event, and a sync_file where the device has them. Each result is checked, and the data after each
 * wait that ended well. For tests in which the GPU goes away meanwhile: wrong data must never come
 * after a success.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "vk-device.h"

/* How long a wait may take that has no limit of its own, and how often it looks. */
#define LIMIT_S 15
#define LOOK_NS 20000

/* So that there is work for some milliseconds. */
#define FILLS 40

enum way { WAY_FENCE, WAY_TIMELINE, WAY_EVENT, WAY_SYNC_FILE, NUM_WAYS };

static const char *const way_names[NUM_WAYS] = {"fence", "timeline", "event", "sync_file"};

struct waits {
    struct vk_device dev;
    bool sync_file;
    struct vk_buffer work;
    struct vk_buffer readback;
    VkCommandPool commands;
    VkCommandBuffer cmd;
    VkFence fence;
    VkSemaphore timeline;
    VkEvent event;
    PFN_vkWaitSemaphoresKHR wait_semaphores;
    PFN_vkGetFenceFdKHR get_fence_fd;
};

static VkDeviceSize buffer_bytes(const struct waits *w)
{
    return (VkDeviceSize)w->dev.job->size * sizeof(uint32_t);
}

static void open_device(struct waits *w, const struct job *job)
{
    const char *const extensions[] = {VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME,
                                      VK_KHR_EXTERNAL_FENCE_FD_EXTENSION_NAME};
    VkPhysicalDeviceTimelineSemaphoreFeaturesKHR features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES_KHR,
        .timelineSemaphore = VK_TRUE,
    };

    w->sync_file = vk_device_offers(job, VK_KHR_EXTERNAL_FENCE_FD_EXTENSION_NAME);
    vk_device_open_with(&w->dev, job, extensions, w->sync_file ? 2 : 1, &features);
    w->wait_semaphores =
        (PFN_vkWaitSemaphoresKHR)vkGetDeviceProcAddr(w->dev.device, "vkWaitSemaphoresKHR");
    w->get_fence_fd = (PFN_vkGetFenceFdKHR)vkGetDeviceProcAddr(w->dev.device, "vkGetFenceFdKHR");
}

static void make_fence(struct waits *w)
{
    VkExportFenceCreateInfo export = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_FENCE_CREATE_INFO,
        .handleTypes = VK_EXTERNAL_FENCE_HANDLE_TYPE_SYNC_FD_BIT,
    };
    VkFenceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO,
        .pNext = w->sync_file ? &export : NULL,
    };

    vk_check(w->dev.job, vkCreateFence(w->dev.device, &info, NULL, &w->fence), "vkCreateFence");
}

static void make_timeline(struct waits *w)
{
    VkSemaphoreTypeCreateInfoKHR type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO_KHR,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE_KHR,
    };
    VkSemaphoreCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
        .pNext = &type,
    };

    vk_check(w->dev.job, vkCreateSemaphore(w->dev.device, &info, NULL, &w->timeline),
             "vkCreateSemaphore");
}

static void open_all(struct waits *w, const struct job *job)
{
    VkEventCreateInfo event = {.sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};
    VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
    };
    VkCommandBufferAllocateInfo buffers = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };

    open_device(w, job);
    vk_buffer_create(&w->dev, buffer_bytes(w), VK_PLACE_DEVICE, &w->work);
    vk_buffer_create(&w->dev, buffer_bytes(w), VK_PLACE_HOST, &w->readback);
    pool.queueFamilyIndex = w->dev.queue_family;
    vk_check(job, vkCreateCommandPool(w->dev.device, &pool, NULL, &w->commands),
             "vkCreateCommandPool");
    buffers.commandPool = w->commands;
    vk_check(job, vkAllocateCommandBuffers(w->dev.device, &buffers, &w->cmd),
             "vkAllocateCommandBuffers");
    vk_check(job, vkCreateEvent(w->dev.device, &event, NULL, &w->event), "vkCreateEvent");
    make_fence(w);
    make_timeline(w);
}

static void record_barrier(VkCommandBuffer cmd, VkPipelineStageFlags to, VkAccessFlags read)
{
    VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = read,
    };

    vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_TRANSFER_BIT, to, 0, 1, &memory, 0, NULL, 0, NULL);
}

static void record_fill(struct waits *w, enum way way, uint32_t value)
{
    const struct job *job = w->dev.job;
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    VkBufferCopy all = {.size = buffer_bytes(w)};

    vk_check(job, vkBeginCommandBuffer(w->cmd, &begin), "vkBeginCommandBuffer");
    for (uint32_t left = FILLS; left-- > 0;) {
        vkCmdFillBuffer(w->cmd, w->work.buffer, 0, buffer_bytes(w), value + left);
        record_barrier(w->cmd, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
    }
    record_barrier(w->cmd, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
    vkCmdCopyBuffer(w->cmd, w->work.buffer, w->readback.buffer, 1, &all);
    record_barrier(w->cmd, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    if (way == WAY_EVENT)
        vkCmdSetEvent(w->cmd, w->event, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
    vk_check(job, vkEndCommandBuffer(w->cmd), "vkEndCommandBuffer");
}

static void submit_fill(struct waits *w, enum way way, uint64_t round)
{
    VkTimelineSemaphoreSubmitInfoKHR timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO_KHR,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &round,
    };
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &w->cmd,
    };

    if (way == WAY_TIMELINE) {
        info.pNext = &timeline;
        info.signalSemaphoreCount = 1;
        info.pSignalSemaphores = &w->timeline;
    }
    vk_check(w->dev.job, vkQueueSubmit(w->dev.queue, 1, &info, w->fence), "vkQueueSubmit");
}

static void wait_for_timeline(struct waits *w, uint64_t round)
{
    VkSemaphoreWaitInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO_KHR,
        .semaphoreCount = 1,
        .pSemaphores = &w->timeline,
        .pValues = &round,
    };

    vk_check(w->dev.job, w->wait_semaphores(w->dev.device, &info, LIMIT_S * UINT64_C(1000000000)),
             "vkWaitSemaphores");
}

static void wait_for_event(struct waits *w)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    time_t until = time(NULL) + LIMIT_S;
    VkResult result;

    while ((result = vkGetEventStatus(w->dev.device, w->event)) == VK_EVENT_RESET) {
        if (time(NULL) > until)
            job_fail(w->dev.job, "the event does not come");
        nanosleep(&pause, NULL);
    }
    if (result != VK_EVENT_SET)
        vk_check(w->dev.job, result, "vkGetEventStatus");
}

static void wait_for_sync_file(struct waits *w)
{
    VkFenceGetFdInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_FENCE_GET_FD_INFO_KHR,
        .fence = w->fence,
        .handleType = VK_EXTERNAL_FENCE_HANDLE_TYPE_SYNC_FD_BIT,
    };
    struct pollfd file = {.events = POLLIN};

    vk_check(w->dev.job, w->get_fence_fd(w->dev.device, &info, &file.fd), "vkGetFenceFdKHR");
    if (file.fd < 0) /* it is done */
        return;
    if (poll(&file, 1, LIMIT_S * 1000) != 1 || !(file.revents & POLLIN))
        job_fail(w->dev.job, "the sync_file does not come (0x%x)", file.revents);
    close(file.fd);
}

static void wait_for_fence(struct waits *w)
{
    vk_check(w->dev.job,
             vkWaitForFences(w->dev.device, 1, &w->fence, VK_TRUE, LIMIT_S * UINT64_C(1000000000)),
             "vkWaitForFences");
}

static void verify_fill(const struct waits *w, enum way way, uint32_t value)
{
    const uint32_t *data = w->readback.map;

    for (uint32_t i = 0; i < w->dev.job->size; i++) {
        if (data[i] == value)
            continue;
        fprintf(stderr,
                "%s: FAIL: wrong data after a success by %s: element %u is 0x%x, not 0x%x\n",
                w->dev.job->program, way_names[way], i, data[i], value);
        _exit(JOB_WRONG);
    }
}

/* The fence is exported by a sync_file only before it is waited for. */
static void run_round(struct waits *w, enum way way, uint64_t round)
{
    const struct job *job = w->dev.job;
    uint32_t value = (uint32_t)round * 0x10000;

    memset(w->readback.map, 0xa5, buffer_bytes(w));
    record_fill(w, way, value);
    submit_fill(w, way, round);
    if (way == WAY_TIMELINE)
        wait_for_timeline(w, round);
    else if (way == WAY_EVENT)
        wait_for_event(w);
    else if (way == WAY_SYNC_FILE)
        wait_for_sync_file(w);
    else
        wait_for_fence(w);
    verify_fill(w, way, value);

    /* An exported fence is as it was before. */
    if (way == WAY_SYNC_FILE)
        vk_check(job, vkQueueWaitIdle(w->dev.queue), "vkQueueWaitIdle");
    else
        wait_for_fence(w);
    vk_check(job, vkResetFences(w->dev.device, 1, &w->fence), "vkResetFences");
    vk_check(job, vkResetEvent(w->dev.device, w->event), "vkResetEvent");
}

int main(int argc, char **argv)
{
    struct waits w = {0};
    struct job job;

    job_parse(&job, argc, argv);
    job_start_clock(&job);
    open_all(&w, &job);
    for (uint64_t round = 0; job_continues(&job, round); round++) {
        enum way way = (enum way)(round % NUM_WAYS);

        job_start_clock(&job);
        if (way == WAY_SYNC_FILE && !w.sync_file)
            way = WAY_FENCE;
        run_round(&w, way, round + 1);
        job_report_round(&job, round, way_names[way]);
    }
    vkDestroyDevice(w.dev.device, NULL);
    vkDestroyInstance(w.dev.instance, NULL);
    job_report_end(&job, w.dev.name);
    return 0;
}
