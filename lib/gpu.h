/* SPDX-License-Identifier: MIT */
/*
 * A physical GPU: one view of it whoever made it.
 */
#ifndef INVENTORY_GPU_H
#define INVENTORY_GPU_H

#include "lib/gpus.h"
#include "lib/pci.h"

/**
 * Gpu
 * @name: vendor and device as pci.ids has them
 * @vram: bytes; 0: not known
 * @vram_source: where that number is from, NULL where there is none
 * @drm_nodes: "card0", "renderD128"
 * @group: addresses of the other devices in its IOMMU group, which must move with it
 * @group_in_use: those of them that have a driver which is neither vfio-pci nor a bridge's
 * @types: mdev types that it offers
 */
typedef struct {
    PciDevice *pci;
    char *name;
    GpuMode mode;
    guint64 vram;
    char *vram_source;
    GStrv drm_nodes;
    GStrv group;
    GStrv group_in_use;
    GStrv types;
} Gpu;

/* Takes @pci. @name: to be copied. @entry: what gpus.conf says of it, or NULL. */
Gpu *gpu_new(const char *root, PciDevice *pci, const char *name, const GpuEntry *entry);

void gpu_free(Gpu *gpu);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Gpu, gpu_free)

#endif
