/* SPDX-License-Identifier: MIT */
/*
 * Devices that share an IOMMU group with a GPU: they can't stay with the host while a VM has the
 * GPU.
 */
#ifndef MODES_COMPANIONS_H
#define MODES_COMPANIONS_H

#include "lib/gpu.h"

/*
 * Adds a sentence for each of them that is in use, or of which that can't be said. The GPU's own
 * functions, such as its sound, are in use if a process has them open; network cards if an
 * interface is up. Disks always may be in use.
 */
void companions_add_users(GStrvBuilder *users, const char *root, const Gpu *gpu);

/* Those that a switch to passthrough has moved along: bound to vfio-pci by driver_override. To be
 * freed. */
GStrv companions_moved(const char *root, const Gpu *gpu);

/* "network interface eth0 of 0000:01:00.0 is up", or NULL. To be freed. */
char *companion_network(const PciDevice *device);

#endif
