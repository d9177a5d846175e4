/* SPDX-License-Identifier: MIT */
/*
 * Computes with Vulkan and checks every element (job.h). The way of the data is that of a real
 * program: written by the CPU, computed into device-local memory, copied back, read by the CPU.
 */
#include <stdlib.h>
#include <string.h>

#include "vk-dispatch.h"
#include "constants.h"

#include "gather.spv.h"
#include "madd.spv.h"

struct kernel {
    struct vk_kernel vk;
    struct vk_buffer result;
    struct vk_buffer readback;
    uint32_t *copy;
};

struct compute {
    struct vk_device dev;
    struct vk_dispatch dispatch;
    struct vk_buffer in;
    struct kernel kernels[JOB_NUM_KERNELS];
};

static const struct {
    const uint32_t *code;
    size_t size;
} spirv[JOB_NUM_KERNELS] = {
    [JOB_MADD] = {madd_spirv, sizeof(madd_spirv)},
    [JOB_GATHER] = {gather_spirv, sizeof(gather_spirv)},
};

static VkDeviceSize buffer_bytes(const struct job *job)
{
    return (VkDeviceSize)job->size * sizeof(uint32_t);
}

static void compute_open(struct compute *c, const struct job *job)
{
    VkDeviceSize size = buffer_bytes(job);

    vk_device_open(&c->dev, job);
    vk_dispatch_create(&c->dev, JOB_NUM_KERNELS, 2, sizeof(struct job_params), &c->dispatch);
    vk_buffer_create(&c->dev, size, VK_PLACE_HOST, &c->in);
    for (int i = 0; i < JOB_NUM_KERNELS; i++) {
        struct kernel *kernel = &c->kernels[i];
        const struct vk_buffer *buffers[] = {&c->in, &kernel->result};

        vk_buffer_create(&c->dev, size, VK_PLACE_DEVICE, &kernel->result);
        vk_buffer_create(&c->dev, size, VK_PLACE_HOST, &kernel->readback);
        kernel->copy = job_alloc(job);
        vk_kernel_create(&c->dev, &c->dispatch, spirv[i].code, spirv[i].size, buffers, &kernel->vk);
    }
}

static void compute_close(struct compute *c)
{
    for (int i = 0; i < JOB_NUM_KERNELS; i++) {
        struct kernel *kernel = &c->kernels[i];

        vk_kernel_destroy(&c->dev, &kernel->vk);
        vk_buffer_destroy(&c->dev, &kernel->result);
        vk_buffer_destroy(&c->dev, &kernel->readback);
        free(kernel->copy);
    }
    vk_buffer_destroy(&c->dev, &c->in);
    vk_dispatch_destroy(&c->dev, &c->dispatch);
    vk_device_close(&c->dev);
}

static void record_barrier(VkCommandBuffer cmd, VkPipelineStageFlags from, VkAccessFlags written,
                           VkPipelineStageFlags to, VkAccessFlags read)
{
    VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = written,
        .dstAccessMask = read,
    };

    vkCmdPipelineBarrier(cmd, from, to, 0, 1, &memory, 0, NULL, 0, NULL);
}

static void record_round(struct compute *c, uint64_t round)
{
    const struct job *job = c->dev.job;
    VkCommandBuffer cmd = c->dispatch.cmd;
    VkPipelineLayout layout = c->dispatch.layout;
    struct job_params params = job_params(job, round);
    VkBufferCopy all = {.size = buffer_bytes(job)};
    VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };

    vk_check(job, vkBeginCommandBuffer(cmd, &begin), "vkBeginCommandBuffer");
    vkCmdPushConstants(cmd, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(params), &params);
    for (int i = 0; i < JOB_NUM_KERNELS; i++) {
        vkCmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, c->kernels[i].vk.pipeline);
        vkCmdBindDescriptorSets(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1,
                                &c->kernels[i].vk.set, 0, NULL);
        vkCmdDispatch(cmd, job->size / GROUP_SIZE, 1, 1);
    }
    record_barrier(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                   VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
    for (int i = 0; i < JOB_NUM_KERNELS; i++)
        vkCmdCopyBuffer(cmd, c->kernels[i].result.buffer, c->kernels[i].readback.buffer, 1, &all);
    record_barrier(cmd, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
                   VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    vk_check(job, vkEndCommandBuffer(cmd), "vkEndCommandBuffer");
}

static void compute_round(struct compute *c, uint64_t round)
{
    const struct job *job = c->dev.job;
    VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &c->dispatch.cmd,
    };

    job_fill_input(job, round, c->in.map);
    for (int i = 0; i < JOB_NUM_KERNELS; i++)
        job_fill_output(job, c->kernels[i].readback.map);
    record_round(c, round);
    vk_check(job, vkQueueSubmit(c->dev.queue, 1, &submit, c->dispatch.fence), "vkQueueSubmit");
    vk_dispatch_wait(&c->dev, &c->dispatch);
    /* At once: the GPU's memory may go at any moment, and to verify takes its time. */
    for (int i = 0; i < JOB_NUM_KERNELS; i++)
        memcpy(c->kernels[i].copy, c->kernels[i].readback.map, buffer_bytes(job));
    for (int i = 0; i < JOB_NUM_KERNELS; i++)
        job_verify(job, round, (enum job_kernel)i, c->kernels[i].copy);
    job_report_round(job, round, c->dev.name);
}

int main(int argc, char **argv)
{
    struct compute c;
    struct job job;

    job_parse(&job, argc, argv);
    job_start_clock(&job);
    compute_open(&c, &job);
    for (uint64_t round = 0; job_continues(&job, round); round++) {
        if (round) {
            job_start_clock(&job);
            if (job.fresh) {
                compute_close(&c);
                compute_open(&c, &job);
            }
        }
        compute_round(&c, round);
    }
    compute_close(&c);
    job_report_end(&job, c.dev.name);
    return 0;
}
