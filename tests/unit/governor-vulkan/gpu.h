/* SPDX-License-Identifier: MIT */
/*
 * A program that uses Vulkan, for tests: an instance and a device on software Vulkan with the
 * layer, and work whose results are checked. Every failure ends the test.
 */
#ifndef GPU_H
#define GPU_H

#include <glib.h>
#include <vulkan/vulkan.h>

#include "fake_member.h"

#define VK(call) g_assert_cmpint((call), ==, VK_SUCCESS)

#define GPU_NUMBERS 64

struct gpu_options {
    const char *const *layers;     /* besides the governor, outermost first; ends with NULL */
    const char *const *extensions; /* of the device */
    const char *const *instance_extensions;
    bool surface;         /* with a surface without a display, as swapchains need */
    uint32_t api_version; /* 0: 1.3 */
};

struct gpu {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t memory_type;
    VkCommandPool pool;
    VkDescriptorSetLayout set_layout;
    VkDescriptorPool descriptors;
    VkDescriptorSet set;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkBuffer buffer;
    VkDeviceMemory memory;
    uint32_t *numbers;
    uint32_t expected;       /* of numbers[0], by what has been submitted */
    unsigned int complaints; /* of the validation layer */
    VkDebugUtilsMessengerEXT messenger;
};

/* Sets the paths of the layer and the driver; before anything else in main(). */
void gpu_environment(void);

void gpu_open(struct gpu *gpu, const struct gpu_options *options);
void gpu_close(struct gpu *gpu);

/* A device whose submissions are metered; and its end: every begun debit has ended once. */
struct fake_member *gpu_open_metered(struct gpu *gpu, const struct gpu_options *options);
void gpu_close_checked(struct gpu *gpu, struct fake_member *member);

/* The layer's other half; NULL if the layer was not loaded. */
struct fake_member *gpu_member(void);

/* Whether the layer's code is what @function calls first. */
gboolean gpu_is_of_layer(PFN_vkVoidFunction function);

/* A command buffer that is being recorded, for any number of submissions. */
VkCommandBuffer gpu_begin(struct gpu *gpu);

/* Command buffers that run the shader for @rounds. */
VkCommandBuffer gpu_record(struct gpu *gpu, uint32_t rounds);
/* Other work in the same command buffer, which the layer takes for the earlier one. */
void gpu_record_again(struct gpu *gpu, VkCommandBuffer commands, uint32_t rounds);
VkCommandBuffer gpu_record_in_secondary(struct gpu *gpu, uint32_t rounds);

/* What numbers[0] gains by @rounds. */
uint32_t gpu_gain(uint32_t rounds);

VkSemaphore gpu_timeline(struct gpu *gpu);
VkFence gpu_fence(struct gpu *gpu);
void gpu_wait_fence(struct gpu *gpu, VkFence fence);

/* Waits for the device, and checks the numbers against gpu->expected. */
void gpu_check(struct gpu *gpu);

/* @bytes of device memory, with @chain. */
VkResult gpu_allocate(struct gpu *gpu, VkDeviceSize bytes, const void *chain,
                      VkDeviceMemory *memory);

#endif /* GPU_H */
