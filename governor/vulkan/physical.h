/* SPDX-License-Identifier: MIT */
/*
 * Which slice a physical device is of. Where the process has one slice for whatever GPU there is,
 * that; else the slice of the GPU, by its PCI address.
 *
 * Of none are a processor that has no slice as a soft:NAME, and Venus without a GPU's node, which
 * works by a socket: who serves that is a member of the slice himself.
 */
#ifndef GOVERNOR_VULKAN_PHYSICAL_H
#define GOVERNOR_VULKAN_PHYSICAL_H

#include "device.h"

/* Where a physical device is, as far as its driver tells. */
struct physical_place {
    char address[24]; /* as 0000:01:00.0; "": not told */
    bool is_cpu;
    bool is_socket; /* Venus without a node */
};

/* Of @slices, as process_slices_get() has them. NULL: of a GPU that has no slice here. */
struct layer_slice *physical_choose(struct layer_slice *slices, const struct physical_place *place);

/* As above; the answer is kept. Thread-safe. */
struct layer_slice *physical_slice(struct layer_instance *instance, VkPhysicalDevice physical);

/* Forgets what was kept for @instance. */
void physical_forget(struct layer_instance *instance);

/*
 * The slice that a device of @physical, or of the group in @info's chain, is to be of. NULL: there
 * may be none, which is said on standard error.
 */
struct layer_slice *physical_slice_of_device(struct layer_instance *instance,
                                             VkPhysicalDevice physical,
                                             const VkDeviceCreateInfo *info);

#endif /* GOVERNOR_VULKAN_PHYSICAL_H */
