/* SPDX-License-Identifier: MIT */
/*
 * What is needed to dispatch compute shaders on a Vulkan device: the layout that they share, a
 * command buffer and a fence; then one kernel for each shader. Every failure ends the process with
 * a message (job_fail()).
 */
#ifndef GUEST_VK_DISPATCH_H
#define GUEST_VK_DISPATCH_H

#include "vk-device.h"

#define VK_DISPATCH_MAX_BUFFERS 2u

/**
 * struct vk_dispatch - shared by all kernels
 * @buffers: storage buffers of every kernel, bindings 0 and up
 * @cmd: one primary command buffer, which may be recorded repeatedly
 */
struct vk_dispatch {
    uint32_t buffers;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkDescriptorPool descriptors;
    VkCommandPool commands;
    VkCommandBuffer cmd;
    VkFence fence;
};

struct vk_kernel {
    VkShaderModule shader;
    VkPipeline pipeline;
    VkDescriptorSet set;
};

/* For @kernels kernels of @buffers storage buffers and @push_bytes of push constants each. */
void vk_dispatch_create(const struct vk_device *dev, uint32_t kernels, uint32_t buffers,
                        uint32_t push_bytes, struct vk_dispatch *dispatch);
void vk_dispatch_destroy(const struct vk_device *dev, struct vk_dispatch *dispatch);

/* @spirv: @size bytes, entry point main. @buffers: as many as the dispatch has. */
void vk_kernel_create(const struct vk_device *dev, const struct vk_dispatch *dispatch,
                      const uint32_t *spirv, size_t size, const struct vk_buffer *const *buffers,
                      struct vk_kernel *kernel);
void vk_kernel_destroy(const struct vk_device *dev, struct vk_kernel *kernel);

/* Waits for the fence as long as the job's timeout allows, and resets it. */
void vk_dispatch_wait(const struct vk_device *dev, const struct vk_dispatch *dispatch);

#endif /* GUEST_VK_DISPATCH_H */
