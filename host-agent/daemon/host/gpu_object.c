/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/host/gpu_object.h"

#include <string.h>

#include "lib/bus.h"

/*
 * "soft_NAME" with every character that is not a letter or digit in hexadecimal, so that all are
 * different.
 */
static char *soft_object_name(const char *name)
{
    GString *escaped = g_string_new("soft_");

    for (; *name; name++) {
        if (g_ascii_isalnum(*name))
            g_string_append_c(escaped, *name);
        else
            g_string_append_printf(escaped, "_%02x", (guint)*name);
    }
    return g_string_free(escaped, FALSE);
}

char *gpu_object_path(const char *address)
{
    g_autofree char *name = gpu_name_is_soft(address)
                                ? soft_object_name(address + strlen(GPU_SOFT_PREFIX))
                                : g_strdelimit(g_strdup(address), ":.", '_');

    return g_strconcat(VGPU_GPU_PATH, "/", name, NULL);
}

/* Properties that modules set when they have a value. */
static void set_defaults(VgpuGpu *interface, const Gpu *gpu)
{
    static const char *const none[] = {NULL};

    vgpu_gpu_set_healthy(interface, TRUE);
    vgpu_gpu_set_health_reasons(interface, none);
    vgpu_gpu_set_partitions(interface, none);
    vgpu_gpu_set_switching(interface, "");
    vgpu_gpu_set_mode_source(interface, "");
    vgpu_gpu_set_vulkan_device(interface, "");
    vgpu_gpu_set_vulkan_driver(interface, "");
    vgpu_gpu_set_vulkan_api(interface, "");
    vgpu_gpu_set_vulkan_features(interface, none);
    vgpu_gpu_set_wanted_mode(interface, gpu_mode_name(gpu->mode));
}

VgpuObjectSkeleton *gpu_object_new(const Gpu *gpu)
{
    g_autofree char *path = gpu_object_path(gpu->pci->address);
    VgpuObjectSkeleton *object = vgpu_object_skeleton_new(path);
    g_autoptr(VgpuGpu) interface = vgpu_gpu_skeleton_new();

    set_defaults(interface, gpu);
    vgpu_object_skeleton_set_gpu(object, interface);
    gpu_object_update(object, gpu);
    return object;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static void set_pci(VgpuGpu *interface, const PciDevice *pci)
{
    vgpu_gpu_set_address(interface, pci->address);
    vgpu_gpu_set_vendor_id(interface, (guint16)pci->vendor);
    vgpu_gpu_set_device_id(interface, (guint16)pci->device);
    vgpu_gpu_set_driver(interface, or_empty(pci->driver));
    vgpu_gpu_set_numa_node(interface, pci->numa_node);
    vgpu_gpu_set_iommu_group(interface, or_empty(pci->iommu_group));
    vgpu_gpu_set_link_speed(interface, pci->link.speed);
    vgpu_gpu_set_link_width(interface, pci->link.width);
    vgpu_gpu_set_link_speed_max(interface, pci->max_link.speed);
    vgpu_gpu_set_link_width_max(interface, pci->max_link.width);
    vgpu_gpu_set_link_bandwidth(interface, pci_link_bandwidth(&pci->max_link));
    vgpu_gpu_set_sriov_total(interface, pci->total_vfs);
    vgpu_gpu_set_sriov_active(interface, pci->vfs);
    vgpu_gpu_set_physical_function(interface, or_empty(pci->physfn));
}

void gpu_object_update(VgpuObjectSkeleton *object, const Gpu *gpu)
{
    g_autoptr(VgpuGpu) interface = vgpu_object_get_gpu(VGPU_OBJECT(object));

    set_pci(interface, gpu->pci);
    vgpu_gpu_set_name(interface, gpu->name);
    vgpu_gpu_set_mode(interface, gpu_mode_name(gpu->mode));
    vgpu_gpu_set_vram(interface, gpu->vram);
    vgpu_gpu_set_vram_source(interface, or_empty(gpu->vram_source));
    vgpu_gpu_set_iommu_group_members(interface, (const char *const *)gpu->group);
    vgpu_gpu_set_iommu_group_in_use(interface, (const char *const *)gpu->group_in_use);
    vgpu_gpu_set_drm_nodes(interface, (const char *const *)gpu->drm_nodes);
    vgpu_gpu_set_containers_only(interface, gpu->containers_only);
    vgpu_gpu_set_mdev_types(interface, (const char *const *)gpu->types);
}
