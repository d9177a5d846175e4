/* SPDX-License-Identifier: MIT */
/*
 * A Vulkan device with one queue, and buffers on it. Every failure ends the process with a message
 * (job_fail()).
 */
#ifndef GUEST_VK_DEVICE_H
#define GUEST_VK_DEVICE_H

#include "job.h"

#include <vulkan/vulkan.h>

/**
 * struct vk_device - the requested device
 * @name: as the driver gives it
 */
struct vk_device {
    const struct job *job;
    VkInstance instance;
    VkPhysicalDevice gpu;
    VkDevice device;
    VkQueue queue;
    uint32_t queue_family;
    VkPhysicalDeviceMemoryProperties memory;
    char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
};

/**
 * struct vk_buffer - a storage buffer with memory of its own
 * @map: its content, NULL if the CPU cannot access it
 */
struct vk_buffer {
    VkBuffer buffer;
    VkDeviceMemory memory;
    void *map;
};

enum vk_place { VK_PLACE_DEVICE, VK_PLACE_HOST };

void vk_device_open(struct vk_device *dev, const struct job *job);

/* The same, with required extensions, and their features for VkDeviceCreateInfo. */
void vk_device_open_with(struct vk_device *dev, const struct job *job,
                         const char *const *extensions, uint32_t count, const void *features);

/* Whether the first device that the job accepts has it; called before the device is opened. */
bool vk_device_offers(const struct job *job, const char *extension);

void vk_device_close(struct vk_device *dev);

void vk_buffer_create(const struct vk_device *dev, VkDeviceSize size, enum vk_place place,
                      struct vk_buffer *buffer);
void vk_buffer_destroy(const struct vk_device *dev, struct vk_buffer *buffer);

/* Ends the process unless @result is VK_SUCCESS; @what is the call. */
void vk_check(const struct job *job, VkResult result, const char *what);

#endif /* GUEST_VK_DEVICE_H */
