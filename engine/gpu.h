/* SPDX-License-Identifier: MIT */
/*
 * The physical GPU of a vGPU, from sysfs: its device nodes, and how to recognise its Vulkan device.
 */
#ifndef ENGINE_GPU_H
#define ENGINE_GPU_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * struct gpu
 * @name: as the driver gave it
 * @soft: no PCI device; it means the CPU's Vulkan driver
 * @domain, @bus, @device, @function: PCI address
 * @render_node: "/dev/dri/renderD128", or NULL
 * @render_major, @render_minor: its device number
 * @icd_hint: part of the name of its likely Vulkan driver, or NULL
 * @nodes: all device nodes that the GPU's user-space drivers need, NULL terminated
 */
struct gpu {
    char *name;
    bool soft;
    uint32_t domain;
    uint32_t bus;
    uint32_t device;
    uint32_t function;
    char *render_node;
    uint32_t render_major;
    uint32_t render_minor;
    const char *icd_hint;
    GStrv nodes;
};

/*
 * Looks up @name ("0000:01:00.0" or "soft:<name>") under @sysroot, "" in production. NULL with
 * @error set if there is no such GPU or nothing to render with.
 */
struct gpu *gpu_lookup(const char *name, const char *sysroot, GError **error);

/*
 * The same for CUDA alone: a GPU of NVIDIA's driver, which needs no render node for that, and has
 * none without nvidia-drm.
 */
struct gpu *gpu_lookup_cuda(const char *name, const char *sysroot, GError **error);

/*
 * One of these, as soon as the GPU is there with its nodes, until @until (monotonic). A GPU that is
 * being reset may be gone meanwhile, and at boot a program, not the kernel, makes some of the
 * nodes; what comes after the sandbox has closed cannot be used. A wrong name is refused at once.
 */
typedef struct gpu *(*gpu_finder)(const char *name, const char *sysroot, GError **error);
struct gpu *gpu_wait_for(gpu_finder lookup, const char *name, const char *sysroot, gint64 until,
                         GError **error);

void gpu_free(struct gpu *gpu);

#endif /* ENGINE_GPU_H */
