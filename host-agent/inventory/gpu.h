/* SPDX-License-Identifier: MIT */
/*
 * A physical GPU: one view of it whoever made it.
 */
#ifndef INVENTORY_GPU_H
#define INVENTORY_GPU_H

#include "pci.h"

/* What the GPU is used for now, by what the kernel has: its driver, its types, its virtual
 * functions. */
typedef enum {
    GPU_MODE_HOST,        /* left alone: the host's programs have it, or nobody */
    GPU_MODE_SHARED,      /* cut into vGPUs */
    GPU_MODE_PASSTHROUGH, /* bound to vfio-pci: a VM has it whole, or may take it */
    GPU_MODE_PARTITIONED, /* has SR-IOV virtual functions */
} GpuMode;

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

/* Takes @pci. @name: to be copied. */
Gpu *gpu_new(const char *root, PciDevice *pci, const char *name);

void gpu_free(Gpu *gpu);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Gpu, gpu_free)

/* "host", "shared", "passthrough", "partitioned" */
const char *gpu_mode_name(GpuMode mode);

#endif
