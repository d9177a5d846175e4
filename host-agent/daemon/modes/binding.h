/* SPDX-License-Identifier: MIT */
/*
 * Drivers of a GPU and of its companions, and its hardware partitions. These calls take as long as
 * the drivers do.
 */
#ifndef VGPUD_MODES_BINDING_H
#define VGPUD_MODES_BINDING_H

#include <glib.h>

#include "lib/gpu.h"
#include "lib/host_root.h"

/*
 * Detaches a device from its driver and binds it to vfio-pci. If it is bound already, that is no
 * error.
 */
gboolean binding_to_vfio(HostRoot *root, const char *address, GError **error);

/*
 * Binds a device to the driver that the kernel would have chosen. A device with another driver than
 * vfio-pci keeps it.
 */
gboolean binding_give_back(HostRoot *root, const char *address, GError **error);

/* Loads vfio-pci, through systemd, if it is not loaded. */
gboolean binding_load_vfio(HostRoot *root, GError **error);

/*
 * Devices that share an IOMMU group with a GPU: they cannot stay with the host while a VM has the
 * GPU.
 */
/*
 * Adds a sentence for each of them that is in use, or whose use cannot be determined. The GPU's own
 * functions, such as its sound, are in use if a process has them open; network cards if an
 * interface is up. Disks always may be in use.
 */
void companions_add_users(GStrvBuilder *users, HostRoot *root, const Gpu *gpu);

/*
 * Those that a switch to passthrough has moved with the GPU: bound to vfio-pci by driver_override.
 * To be freed.
 */
GStrv companions_moved(HostRoot *root, const Gpu *gpu);

/* "network interface eth0 of 0000:01:00.0 is up", or NULL. To be freed. */
char *companion_network(HostRoot *root, const PciDevice *device);

#define NVIDIA_SMI "nvidia-smi"

/*
 * NVIDIA's driver keeps @gpu initialized although no process has it open. FALSE, too, if nvidia-smi
 * does not say. Not from the main loop.
 */
gboolean nvidia_is_persistent(const Gpu *gpu);

/* GPUs with hardware partitions: one interface over SR-IOV and the vendors' own methods. */

/**
 * Partitioner - a method of partitioning
 * @name: for people
 * @can: whether @gpu supports this method at all; may run programs
 * @list: names of the existing partitions: PCI addresses, or the vendor's names; to be freed. Only
 * reads.
 * @most: maximum number
 * @make: makes @count of them, 0: the maximum; existing ones are no error if their number is right.
 * May take long.
 * @remove: removes all
 */
typedef struct {
    const char *name;
    gboolean (*can)(HostRoot *root, const Gpu *gpu);
    GStrv (*list)(HostRoot *root, const Gpu *gpu);
    guint (*most)(const Gpu *gpu);
    gboolean (*make)(HostRoot *root, const Gpu *gpu, guint count, GError **error);
    gboolean (*remove)(HostRoot *root, const Gpu *gpu, GError **error);
} Partitioner;

extern const Partitioner partitioner_mig;

/* The one for @gpu; NULL: it cannot be partitioned. Not from the main loop. */
const Partitioner *partitioner_of(HostRoot *root, const Gpu *gpu);

/* Present partitions of @gpu, of any method. To be freed. */
GStrv partitioner_list(HostRoot *root, const Gpu *gpu);

#endif
