/* SPDX-License-Identifier: MIT */
/*
 * Images of swapchains. Drivers allocate them in ways that the layer does not see, so the charge is
 * the format's size times the extent.
 */
#ifndef GOVERNOR_VULKAN_SWAPCHAIN_H
#define GOVERNOR_VULKAN_SWAPCHAIN_H

#include "layer_state.h"

/* For handle_map_destroy(); @data is the member. */
void swapchain_forget(void *record, void *data);

LAYER_COMMAND(CreateSwapchainKHR);
LAYER_COMMAND(CreateSharedSwapchainsKHR);
LAYER_COMMAND(DestroySwapchainKHR);

#endif /* GOVERNOR_VULKAN_SWAPCHAIN_H */
