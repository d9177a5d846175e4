/* SPDX-License-Identifier: MIT */
/*
 * What Vulkan shows of the GPUs. A Vulkan driver is loaded by vgpu-describe@GPU.service, in a sandbox of its own, which
 * leaves what it finds in /run/vgpu/vulkan/GPU.
 */
#ifndef VGPUD_HEALTH_VULKAN_WATCH_H
#define VGPUD_HEALTH_VULKAN_WATCH_H

#include "host-agent/daemon/host/host.h"

typedef struct VulkanWatch VulkanWatch;

/* @host: lives longer. */
VulkanWatch *vulkan_watch_new(Host *host);

void vulkan_watch_free(VulkanWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VulkanWatch, vulkan_watch_free)

/* Begins: @bus is where systemd is. */
void vulkan_watch_start(VulkanWatch *watch, GDBusConnection *bus);

#endif
