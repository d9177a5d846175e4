/* SPDX-License-Identifier: MIT */
/*
 * What Vulkan says of a GPU, found out in a process of its own, since a driver may crash:
 * `vgpu-card abilities` prints it as one JSON object.
 */
#ifndef CARD_VULKAN_H
#define CARD_VULKAN_H

#include <json-glib/json-glib.h>
#include <vulkan/vulkan.h>

/**
 * Gpu - a GPU, and a device on it with all extensions that are asked for here and that it has
 * @extensions: of the device, of VkExtensionProperties
 * @family: a queue family that computes
 */
typedef struct {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    GArray *extensions;
    VkDevice device;
    guint32 family;
} Gpu;

/* The GPU whose name contains @wanted, NULL: the first. */
gboolean gpu_open(Gpu *gpu, const char *wanted, GError **error);
void gpu_close(Gpu *gpu);

gboolean gpu_has(const Gpu *gpu, const char *extension);

/* Name, driver, address, heaps, queues. */
JsonObject *gpu_describe(const Gpu *gpu);

/* Adds to @list what of shared memory the driver promises, and what of it was tried. */
void gpu_try_sharing(const Gpu *gpu, JsonArray *list);

/* Adds to @list whether it has the extensions that matter. */
void gpu_ask_abilities(const Gpu *gpu, JsonArray *list);

/* @text: what was seen, or NULL. @use: what needs it. */
void ability_add(JsonArray *list, const char *name, gboolean has, const char *text,
                 const char *use);

/* For the process of its own: prints all of it; its exit status. */
int vulkan_main(const char *wanted);

#endif
