/* SPDX-License-Identifier: MIT */
#include "lib/gpu.h"

#include "lib/hardware.h"
#include "lib/nvidia.h"
#include "lib/sysfs.h"

#define PCI_CLASS_BRIDGE 0x06

static GStrv drm_nodes(const char *dir)
{
    g_autofree char *drm = g_build_filename(dir, "drm", NULL);

    return sysfs_list(drm);
}

static GStrv mdev_types(const char *dir)
{
    g_autofree char *types = g_build_filename(dir, "mdev_supported_types", NULL);

    return sysfs_list(types);
}

/* Bridges are in the group for good and stay with their own driver: VFIO lets them. */
static gboolean must_be_freed(const PciDevice *device)
{
    return device->driver && !g_str_equal(device->driver, "vfio-pci") &&
           device->class >> 16 != PCI_CLASS_BRIDGE;
}

static void read_group(Gpu *gpu, const char *root)
{
    g_auto(GStrv) members =
        gpu->pci->iommu_group ? pci_group_members(root, gpu->pci->iommu_group) : NULL;
    g_autoptr(GStrvBuilder) others = g_strv_builder_new();
    g_autoptr(GStrvBuilder) in_use = g_strv_builder_new();

    for (guint i = 0; members && members[i]; i++) {
        g_autoptr(PciDevice) member = NULL;

        if (g_str_equal(members[i], gpu->pci->address))
            continue;
        g_strv_builder_add(others, members[i]);
        member = pci_device_read(root, members[i]);
        if (member && must_be_freed(member))
            g_strv_builder_add(in_use, members[i]);
    }
    gpu->group = g_strv_builder_end(others);
    gpu->group_in_use = g_strv_builder_end(in_use);
}

static GpuMode mode_of(const char *root, const Gpu *gpu)
{
    g_auto(GStrv) instances = nvidia_instances(root, gpu->pci->address);

    if (g_strcmp0(gpu->pci->driver, "vfio-pci") == 0)
        return GPU_MODE_PASSTHROUGH;
    if (gpu->types[0])
        return GPU_MODE_SHARED;
    return gpu->pci->vfs || instances[0] ? GPU_MODE_PARTITIONED : GPU_MODE_HOST;
}

/* As the registrar has it: what the operator says is better than what the hardware says. */
static void read_vram(Gpu *gpu, const GpuEntry *entry)
{
    const char *driver = gpu->pci->driver ? gpu->pci->driver : "no driver";

    if (entry && entry->vram_bytes) {
        gpu->vram = entry->vram_bytes;
        gpu->vram_source = g_strdup("vram= in gpus.conf");
    } else if (!hardware_vram(gpu->pci->dir, driver, &gpu->vram, &gpu->vram_source, NULL)) {
        gpu->vram = 0;
    }
}

Gpu *gpu_new(const char *root, PciDevice *pci, const char *name, const GpuEntry *entry)
{
    Gpu *gpu = g_new0(Gpu, 1);

    gpu->pci = pci;
    gpu->name = g_strdup(name);
    gpu->drm_nodes = drm_nodes(pci->dir);
    gpu->types = mdev_types(pci->dir);
    gpu->mode = mode_of(root, gpu);
    read_vram(gpu, entry);
    read_group(gpu, root);
    return gpu;
}

void gpu_free(Gpu *gpu)
{
    pci_device_free(gpu->pci);
    g_free(gpu->name);
    g_free(gpu->vram_source);
    g_strfreev(gpu->drm_nodes);
    g_strfreev(gpu->group);
    g_strfreev(gpu->group_in_use);
    g_strfreev(gpu->types);
    g_free(gpu);
}
