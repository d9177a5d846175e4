/* SPDX-License-Identifier: MIT */
/* A physical GPU: one view of it, whatever its vendor. */
#ifndef LIB_GPU_H
#define LIB_GPU_H

#include "lib/gpus.h"
#include "lib/host_root.h"
#include "lib/pci.h"

/**
 * Gpu
 * @name: vendor and device from pci.ids
 * @vram: bytes; 0: not known
 * @vram_source: the source of that number; NULL: none
 * @drm_nodes: "card0", "renderD128"
 * @group: addresses of the other devices in its IOMMU group, which must move with it
 * @group_in_use: those of them whose driver is neither vfio-pci nor a bridge's
 * @types: mdev types that it offers
 * @health_ignore: as GpuEntry's
 * @containers_only: it is shared without the kernel module (containers_only.h)
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
    guint health_ignore;
    gboolean containers_only;
} Gpu;

/* Takes @pci. @name: to be copied. @entry: its entry in gpus.conf, or NULL. */
Gpu *gpu_new(HostRoot *root, PciDevice *pci, const char *name, const GpuEntry *entry);

/* Whether it has types now, and had none when it was read. */
gboolean gpu_has_new_types(HostRoot *root, const Gpu *gpu);

/* Paths of its nodes, the render node last; to be freed. */
GStrv gpu_nodes(HostRoot *root, const Gpu *gpu);

void gpu_free(Gpu *gpu);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Gpu, gpu_free)

/*
 * All physical GPUs of the host.
 */
typedef struct Inventory Inventory;

Inventory *inventory_new(HostRoot *root);

void inventory_free(Inventory *inventory);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Inventory, inventory_free)

HostRoot *inventory_root(const Inventory *inventory);

/*
 * Reads everything again; of Gpu, in the order of their addresses. GPUs are the devices of a
 * display class, and those that gpus.conf names: PCI devices of any class, and "soft:NAME". While
 * that file is broken, its last valid content counts. While a bound driver does not report a GPU's
 * memory, what it reported before counts.
 */
GPtrArray *inventory_read(Inventory *inventory);

/*
 * What gpus.conf says now; of GpuEntry, to be unreferenced. If the file is broken it counts as it
 * was when it was last right, and the log says why.
 */
GPtrArray *inventory_entries(Inventory *inventory);

#endif
