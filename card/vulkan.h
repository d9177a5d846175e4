/* SPDX-License-Identifier: MIT */
/*
 * Vulkan's description of a GPU, read in a process of its own, because a driver may crash:
 * `vgpu-card abilities` prints it as one JSON object.
 */
#ifndef CARD_VULKAN_H
#define CARD_VULKAN_H

#include <json-glib/json-glib.h>
#include <vulkan/vulkan.h>

/**
 * Gpu - a GPU, and a device on it with all of the extensions used here that it has
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

/* Adds to @list the driver's statements about shared memory. */
void gpu_ask_sharing(const Gpu *gpu, JsonArray *list);

/* Adds to @list whether it has the important extensions. */
void gpu_ask_abilities(const Gpu *gpu, JsonArray *list);

/* @text: the observation, or NULL. @use: what needs it. */
void ability_add(JsonArray *list, const char *name, gboolean has, const char *text,
                 const char *use);

/* For the process of its own: prints the driver's description; returns its exit status. */
int vulkan_main(const char *wanted);

/**
 * SharingTry - a use of memory as a descriptor that is tried, not only queried
 * @name: what must succeed
 * @use: what needs it
 */
typedef struct {
    const char *name;
    const char *use;
} SharingTry;

#define NUM_SHARING_TRIES 3

extern const SharingTry sharing_tries[NUM_SHARING_TRIES];

/*
 * One of them, in another process of its own: its exit status; the reason of a failure is on
 * standard error.
 */
int sharing_main(guint number, const char *wanted);

#endif
