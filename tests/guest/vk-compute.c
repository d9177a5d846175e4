/* SPDX-License-Identifier: MIT */
/*
 * Computes with Vulkan and checks every element (job.h). The way of the data is that of a real
 * program: written by the CPU, computed into device-local memory, copied back, read by the CPU.
 */
#include "vk-device.h"
#include "constants.h"

#include "gather.spv.h"
#include "madd.spv.h"

struct kernel {
    VkShaderModule shader;
    VkPipeline pipeline;
    struct vk_buffer result;
    struct vk_buffer readback;
    VkDescriptorSet set;
};

struct compute {
    struct vk_device dev;
    struct vk_buffer in;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkDescriptorPool descriptors;
    VkCommandPool commands;
    VkCommandBuffer cmd;
    VkFence fence;
    struct kernel kernels[JOB_NUM_KERNELS];
};

static const struct {
    const uint32_t *code;
    size_t size;
} spirv[JOB_NUM_KERNELS] = {
    [JOB_MADD] = { madd_spirv, sizeof(madd_spirv) },
    [JOB_GATHER] = { gather_spirv, sizeof(gather_spirv) },
};

static VkDeviceSize buffer_bytes(const struct job *job)
{
    return (VkDeviceSize)job->size * sizeof(uint32_t);
}

static void create_layouts(struct compute *c)
{
    const struct vk_device *dev = &c->dev;
    VkDescriptorSetLayoutBinding bindings[2];
    VkPushConstantRange push = {
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        .size = sizeof(struct job_params),
    };

    for (uint32_t i = 0; i < 2; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        };

    VkDescriptorSetLayoutCreateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 2,
        .pBindings = bindings,
    };
    vk_check(dev->job,
             vkCreateDescriptorSetLayout(dev->device, &set_info, NULL, &c->set_layout),
             "vkCreateDescriptorSetLayout");

    VkPipelineLayoutCreateInfo layout_info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &c->set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &push,
    };
    vk_check(dev->job, vkCreatePipelineLayout(dev->device, &layout_info, NULL, &c->layout),
             "vkCreatePipelineLayout");
}

static void create_pools(struct compute *c)
{
    const struct vk_device *dev = &c->dev;
    VkDescriptorPoolSize pool_size = {
        .type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .descriptorCount = 2 * JOB_NUM_KERNELS,
    };
    VkDescriptorPoolCreateInfo descriptors = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = JOB_NUM_KERNELS,
        .poolSizeCount = 1,
        .pPoolSizes = &pool_size,
    };
    VkCommandPoolCreateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = dev->queue_family,
    };
    VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };

    vk_check(dev->job, vkCreateDescriptorPool(dev->device, &descriptors, NULL, &c->descriptors),
             "vkCreateDescriptorPool");
    vk_check(dev->job, vkCreateCommandPool(dev->device, &commands, NULL, &c->commands),
             "vkCreateCommandPool");
    vk_check(dev->job, vkCreateFence(dev->device, &fence, NULL, &c->fence), "vkCreateFence");

    VkCommandBufferAllocateInfo alloc = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = c->commands,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    vk_check(dev->job, vkAllocateCommandBuffers(dev->device, &alloc, &c->cmd),
             "vkAllocateCommandBuffers");
}

static void create_pipeline(struct compute *c, enum job_kernel which)
{
    const struct vk_device *dev = &c->dev;
    struct kernel *kernel = &c->kernels[which];
    VkShaderModuleCreateInfo shader = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = spirv[which].size,
        .pCode = spirv[which].code,
    };

    vk_check(dev->job, vkCreateShaderModule(dev->device, &shader, NULL, &kernel->shader),
             "vkCreateShaderModule");

    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {
            .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
            .stage = VK_SHADER_STAGE_COMPUTE_BIT,
            .module = kernel->shader,
            .pName = "main",
        },
        .layout = c->layout,
    };
    vk_check(dev->job,
             vkCreateComputePipelines(dev->device, VK_NULL_HANDLE, 1, &info, NULL,
                                      &kernel->pipeline),
             "vkCreateComputePipelines");
}

static void create_set(struct compute *c, struct kernel *kernel)
{
    const struct vk_device *dev = &c->dev;
    VkDescriptorSetAllocateInfo alloc = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = c->descriptors,
        .descriptorSetCount = 1,
        .pSetLayouts = &c->set_layout,
    };
    VkDescriptorBufferInfo buffers[2] = {
        { .buffer = c->in.buffer, .range = VK_WHOLE_SIZE },
        { .buffer = kernel->result.buffer, .range = VK_WHOLE_SIZE },
    };

    vk_check(dev->job, vkAllocateDescriptorSets(dev->device, &alloc, &kernel->set),
             "vkAllocateDescriptorSets");

    VkWriteDescriptorSet write = {
        .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
        .dstSet = kernel->set,
        .descriptorCount = 1,
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
    };
    for (uint32_t i = 0; i < 2; i++) {
        write.dstBinding = i;
        write.pBufferInfo = &buffers[i];
        vkUpdateDescriptorSets(dev->device, 1, &write, 0, NULL);
    }
}

static void compute_open(struct compute *c, const struct job *job)
{
    VkDeviceSize size = buffer_bytes(job);

    vk_device_open(&c->dev, job);
    create_layouts(c);
    create_pools(c);
    vk_buffer_create(&c->dev, size, VK_PLACE_HOST, &c->in);
    for (int i = 0; i < JOB_NUM_KERNELS; i++) {
        struct kernel *kernel = &c->kernels[i];

        vk_buffer_create(&c->dev, size, VK_PLACE_DEVICE, &kernel->result);
        vk_buffer_create(&c->dev, size, VK_PLACE_HOST, &kernel->readback);
        create_pipeline(c, (enum job_kernel)i);
        create_set(c, kernel);
    }
}

static void compute_close(struct compute *c)
{
    VkDevice device = c->dev.device;

    for (int i = 0; i < JOB_NUM_KERNELS; i++) {
        struct kernel *kernel = &c->kernels[i];

        vkDestroyPipeline(device, kernel->pipeline, NULL);
        vkDestroyShaderModule(device, kernel->shader, NULL);
        vk_buffer_destroy(&c->dev, &kernel->result);
        vk_buffer_destroy(&c->dev, &kernel->readback);
    }
    vk_buffer_destroy(&c->dev, &c->in);
    vkDestroyFence(device, c->fence, NULL);
    vkDestroyCommandPool(device, c->commands, NULL);
    vkDestroyDescriptorPool(device, c->descriptors, NULL);
    vkDestroyPipelineLayout(device, c->layout, NULL);
    vkDestroyDescriptorSetLayout(device, c->set_layout, NULL);
    vk_device_close(&c->dev);
}

static void barrier(VkCommandBuffer cmd, VkPipelineStageFlags from, VkAccessFlags written,
                    VkPipelineStageFlags to, VkAccessFlags read)
{
    VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = written,
        .dstAccessMask = read,
    };

    vkCmdPipelineBarrier(cmd, from, to, 0, 1, &memory, 0, NULL, 0, NULL);
}

static void record(struct compute *c, uint64_t round)
{
    const struct job *job = c->dev.job;
    struct job_params params = job_params(job, round);
    VkBufferCopy all = { .size = buffer_bytes(job) };
    VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };

    vk_check(job, vkBeginCommandBuffer(c->cmd, &begin), "vkBeginCommandBuffer");
    vkCmdPushConstants(c->cmd, c->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(params),
                       &params);
    for (int i = 0; i < JOB_NUM_KERNELS; i++) {
        vkCmdBindPipeline(c->cmd, VK_PIPELINE_BIND_POINT_COMPUTE, c->kernels[i].pipeline);
        vkCmdBindDescriptorSets(c->cmd, VK_PIPELINE_BIND_POINT_COMPUTE, c->layout, 0, 1,
                                &c->kernels[i].set, 0, NULL);
        vkCmdDispatch(c->cmd, job->size / GROUP_SIZE, 1, 1);
    }
    barrier(c->cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
            VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
    for (int i = 0; i < JOB_NUM_KERNELS; i++)
        vkCmdCopyBuffer(c->cmd, c->kernels[i].result.buffer, c->kernels[i].readback.buffer, 1,
                        &all);
    barrier(c->cmd, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    vk_check(job, vkEndCommandBuffer(c->cmd), "vkEndCommandBuffer");
}

static void compute_round(struct compute *c, uint64_t round)
{
    const struct job *job = c->dev.job;
    VkDevice device = c->dev.device;
    VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &c->cmd,
    };

    job_fill_input(job, round, c->in.map);
    for (int i = 0; i < JOB_NUM_KERNELS; i++)
        job_fill_output(job, c->kernels[i].readback.map);
    record(c, round);
    vk_check(job, vkQueueSubmit(c->dev.queue, 1, &submit, c->fence), "vkQueueSubmit");
    vk_check(job,
             vkWaitForFences(device, 1, &c->fence, VK_TRUE, job->timeout * UINT64_C(1000000000)),
             "vkWaitForFences");
    vk_check(job, vkResetFences(device, 1, &c->fence), "vkResetFences");
    for (int i = 0; i < JOB_NUM_KERNELS; i++)
        job_verify(job, round, (enum job_kernel)i, c->kernels[i].readback.map);
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
