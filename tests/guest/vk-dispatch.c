/* SPDX-License-Identifier: MIT */
#include "vk-dispatch.h"

static void create_layouts(const struct vk_device *dev, uint32_t push_bytes,
                           struct vk_dispatch *dispatch)
{
    VkDescriptorSetLayoutBinding bindings[VK_DISPATCH_MAX_BUFFERS];
    VkPushConstantRange push = {
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        .size = push_bytes,
    };

    for (uint32_t i = 0; i < dispatch->buffers; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        };

    VkDescriptorSetLayoutCreateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = dispatch->buffers,
        .pBindings = bindings,
    };
    vk_check(dev->job,
             vkCreateDescriptorSetLayout(dev->device, &set_info, NULL, &dispatch->set_layout),
             "vkCreateDescriptorSetLayout");

    VkPipelineLayoutCreateInfo layout_info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &dispatch->set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &push,
    };
    vk_check(dev->job, vkCreatePipelineLayout(dev->device, &layout_info, NULL, &dispatch->layout),
             "vkCreatePipelineLayout");
}

static void create_descriptor_pool(const struct vk_device *dev, uint32_t kernels,
                                   struct vk_dispatch *dispatch)
{
    VkDescriptorPoolSize size = {
        .type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .descriptorCount = dispatch->buffers * kernels,
    };
    VkDescriptorPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = kernels,
        .poolSizeCount = 1,
        .pPoolSizes = &size,
    };

    vk_check(dev->job, vkCreateDescriptorPool(dev->device, &info, NULL, &dispatch->descriptors),
             "vkCreateDescriptorPool");
}

static void create_command_buffer(const struct vk_device *dev, struct vk_dispatch *dispatch)
{
    VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = dev->queue_family,
    };
    VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};

    vk_check(dev->job, vkCreateCommandPool(dev->device, &pool, NULL, &dispatch->commands),
             "vkCreateCommandPool");
    vk_check(dev->job, vkCreateFence(dev->device, &fence, NULL, &dispatch->fence), "vkCreateFence");

    VkCommandBufferAllocateInfo alloc = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = dispatch->commands,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    vk_check(dev->job, vkAllocateCommandBuffers(dev->device, &alloc, &dispatch->cmd),
             "vkAllocateCommandBuffers");
}

void vk_dispatch_create(const struct vk_device *dev, uint32_t kernels, uint32_t buffers,
                        uint32_t push_bytes, struct vk_dispatch *dispatch)
{
    if (buffers > VK_DISPATCH_MAX_BUFFERS)
        job_fail(dev->job, "a kernel has at most %u buffers", VK_DISPATCH_MAX_BUFFERS);
    dispatch->buffers = buffers;
    create_layouts(dev, push_bytes, dispatch);
    create_descriptor_pool(dev, kernels, dispatch);
    create_command_buffer(dev, dispatch);
}

void vk_dispatch_destroy(const struct vk_device *dev, struct vk_dispatch *dispatch)
{
    vkDestroyFence(dev->device, dispatch->fence, NULL);
    vkDestroyCommandPool(dev->device, dispatch->commands, NULL);
    vkDestroyDescriptorPool(dev->device, dispatch->descriptors, NULL);
    vkDestroyPipelineLayout(dev->device, dispatch->layout, NULL);
    vkDestroyDescriptorSetLayout(dev->device, dispatch->set_layout, NULL);
}

static void create_pipeline(const struct vk_device *dev, const struct vk_dispatch *dispatch,
                            const uint32_t *spirv, size_t size, struct vk_kernel *kernel)
{
    VkShaderModuleCreateInfo shader = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = size,
        .pCode = spirv,
    };

    vk_check(dev->job, vkCreateShaderModule(dev->device, &shader, NULL, &kernel->shader),
             "vkCreateShaderModule");

    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage =
            {
                .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = kernel->shader,
                .pName = "main",
            },
        .layout = dispatch->layout,
    };
    vk_check(
        dev->job,
        vkCreateComputePipelines(dev->device, VK_NULL_HANDLE, 1, &info, NULL, &kernel->pipeline),
        "vkCreateComputePipelines");
}

static void create_set(const struct vk_device *dev, const struct vk_dispatch *dispatch,
                       const struct vk_buffer *const *buffers, struct vk_kernel *kernel)
{
    VkDescriptorSetAllocateInfo alloc = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = dispatch->descriptors,
        .descriptorSetCount = 1,
        .pSetLayouts = &dispatch->set_layout,
    };

    vk_check(dev->job, vkAllocateDescriptorSets(dev->device, &alloc, &kernel->set),
             "vkAllocateDescriptorSets");

    for (uint32_t i = 0; i < dispatch->buffers; i++) {
        VkDescriptorBufferInfo whole = {.buffer = buffers[i]->buffer, .range = VK_WHOLE_SIZE};
        VkWriteDescriptorSet write = {
            .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
            .dstSet = kernel->set,
            .dstBinding = i,
            .descriptorCount = 1,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .pBufferInfo = &whole,
        };

        vkUpdateDescriptorSets(dev->device, 1, &write, 0, NULL);
    }
}

void vk_kernel_create(const struct vk_device *dev, const struct vk_dispatch *dispatch,
                      const uint32_t *spirv, size_t size, const struct vk_buffer *const *buffers,
                      struct vk_kernel *kernel)
{
    create_pipeline(dev, dispatch, spirv, size, kernel);
    create_set(dev, dispatch, buffers, kernel);
}

void vk_kernel_destroy(const struct vk_device *dev, struct vk_kernel *kernel)
{
    vkDestroyPipeline(dev->device, kernel->pipeline, NULL);
    vkDestroyShaderModule(dev->device, kernel->shader, NULL);
}

void vk_dispatch_wait(const struct vk_device *dev, const struct vk_dispatch *dispatch)
{
    uint64_t limit = dev->job->timeout * UINT64_C(1000000000);

    vk_check(dev->job, vkWaitForFences(dev->device, 1, &dispatch->fence, VK_TRUE, limit),
             "vkWaitForFences");
    vk_check(dev->job, vkResetFences(dev->device, 1, &dispatch->fence), "vkResetFences");
}
