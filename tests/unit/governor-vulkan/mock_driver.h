/* SPDX-License-Identifier: MIT */
/*
 * A driver that has every command and always succeeds without doing anything; the layer is on top
 * of it without a loader. Software Vulkan has one queue and few extensions.
 */
#ifndef MOCK_DRIVER_H
#define MOCK_DRIVER_H

#include <glib.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#define MOCK_FAMILIES 3

struct mock_driver {
    VkInstance instance;
    VkDevice device;
    PFN_vkGetInstanceProcAddr get_instance; /* of the layer */
    PFN_vkGetDeviceProcAddr get_device;
    void *library;
};

/* A device with a queue of each family, and a protected one. */
void mock_open(struct mock_driver *mock);
void mock_close(struct mock_driver *mock);

/* @index: below MOCK_FAMILIES that of the family; then the protected one. */
VkQueue mock_queue(guint index);

/* How often the driver was called for commands without code of their own. */
guint mock_calls(void);

/*
 * Creates a device that the driver refuses, whatever is asked. It is below another layer, which
 * takes its link off the chain, and has VK_KHR_calibrated_timestamps. @calls: how often it was
 * asked.
 */
VkResult mock_refused(struct mock_driver *mock, guint *calls);

#endif /* MOCK_DRIVER_H */
