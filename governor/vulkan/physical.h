/* SPDX-License-Identifier: MIT */
/*
 * The slice of a physical device. If the process has one slice for any GPU, it is that; otherwise
 * the slice of the GPU, by its PCI address.
 *
 * Two kinds have none: a processor without a slice named soft:NAME, and Venus without a GPU's node,
 * which uses a socket. The server behind that socket is itself a member of the slice.
 */
#ifndef GOVERNOR_VULKAN_PHYSICAL_H
#define GOVERNOR_VULKAN_PHYSICAL_H

#include "layer_state.h"

/* Where a physical device is, as far as its driver reports it. */
struct physical_place {
    char address[24]; /* as 0000:01:00.0; "": not reported */
    bool is_cpu;
    bool is_socket; /* Venus without a node */
};

/* Of @slices, as process_slices_get() returns them. NULL: of a GPU that has no slice here. */
struct layer_slice *physical_choose(struct layer_slice *slices, const struct physical_place *place);

/* As above; the answer is cached. Thread-safe. */
struct layer_slice *physical_slice(struct layer_instance *instance, VkPhysicalDevice physical);

/* Drops the cache of @instance. */
void physical_forget(struct layer_instance *instance);

/*
 * The slice for a device of @physical, or of the group in @info's chain. NULL: none is allowed;
 * standard error says so.
 */
struct layer_slice *physical_slice_of_device(struct layer_instance *instance,
                                             VkPhysicalDevice physical,
                                             const VkDeviceCreateInfo *info);

#endif /* GOVERNOR_VULKAN_PHYSICAL_H */
