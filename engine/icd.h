/* SPDX-License-Identifier: MIT */
/* The installed Vulkan driver ("ICD") of a GPU. */
#ifndef ENGINE_ICD_H
#define ENGINE_ICD_H

#include "gpu.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * struct icd_report - what a Vulkan driver shows when it is alone
 * @devices: number of physical devices
 * @cpu: the first one is the CPU
 * @has_drm, @render_major, @render_minor: VK_EXT_physical_device_drm of the first one
 * @has_pci, @domain, @bus, @device, @function: VK_EXT_pci_bus_info of the first one
 * @dma_buf, @opaque_fd: its memory can be exported as such, by the query of virglrenderer's workers
 * @api_version: of Vulkan, as in VkPhysicalDeviceProperties
 * @compute_queues, @graphics_queues: of all families with that ability
 * @timeline: it has timeline semaphores
 * @fp16, @fp64, @int64: types that its shaders can compute with
 * @name: of the first one
 */
struct icd_report {
    uint32_t devices;
    bool cpu;
    bool has_drm;
    int64_t render_major;
    int64_t render_minor;
    bool has_pci;
    uint32_t domain;
    uint32_t bus;
    uint32_t device;
    uint32_t function;
    bool dma_buf;
    bool opaque_fd;
    uint32_t api_version;
    uint32_t compute_queues;
    uint32_t graphics_queues;
    bool timeline;
    bool fp16;
    bool fp64;
    bool int64;
    char name[256];
};

/* Whether exactly one device is shown and it is @gpu. */
bool icd_matches(const struct icd_report *report, const struct gpu *gpu);

/*
 * Manifests in the standard directories below @sysroot, sorted by name; those with @hint in their
 * name first, so that the search is short. @hint may be NULL.
 */
GStrv icd_list(const char *sysroot, const char *hint);

/*
 * Loads a driver in a child process and asks it. The child cannot outlive this process. False if
 * the driver crashes, hangs, or has no device; that is no error, most drivers have no device.
 */
bool icd_probe(const char *manifest, struct icd_report *report);

/*
 * The manifest of the driver that shows @gpu and nothing else. If there are several, one that
 * exports dma-bufs is preferred, then one that exports opaque descriptors. NULL with @error set if
 * there is none. To be called inside the sandbox, which makes the other GPUs invisible. @report:
 * what that driver shows.
 */
char *icd_choose(const struct gpu *gpu, const char *const *manifests, struct icd_report *report,
                 GError **error);

/*
 * The manifest of the driver that vgpu-describe has chosen for @gpu, if no driver was installed or
 * changed since; sets @report->dma_buf. NULL: it is not known. To be called outside the sandbox.
 */
char *icd_known(const char *sysroot, const struct gpu *gpu, struct icd_report *report);

#endif /* ENGINE_ICD_H */
