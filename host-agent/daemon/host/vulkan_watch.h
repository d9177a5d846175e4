/* SPDX-License-Identifier: MIT */
/*
 * Vulkan's view of the GPUs. vgpu-describe@GPU.service loads a Vulkan driver in its own sandbox,
 * and leaves its result in /run/vgpu/vulkan/GPU.
 */
#ifndef VGPUD_HOST_VULKAN_WATCH_H
#define VGPUD_HOST_VULKAN_WATCH_H

#include "host-agent/daemon/host/host.h"

typedef struct VulkanWatch VulkanWatch;

/* @host: lives longer. */
VulkanWatch *vulkan_watch_new(Host *host);

void vulkan_watch_free(VulkanWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VulkanWatch, vulkan_watch_free)

/* Begins: @bus has systemd. */
void vulkan_watch_start(VulkanWatch *watch, GDBusConnection *bus);

#endif
