/* SPDX-License-Identifier: MIT */
/*
 * Device nodes by which programs have a device.
 */
#ifndef MODES_NODES_H
#define MODES_NODES_H

#include "lib/pci.h"

/*
 * Nodes of a PCI device, as "dri/renderD128", "vfio/16", "snd/pcmC1D3p": what its driver made below
 * it, and VFIO's where it is bound to that. Not those of its vGPUs. To be freed.
 */
GStrv nodes_of_device(const char *root, const PciDevice *device);

/* VFIO's node of a vGPU's IOMMU group; empty where it has none. To be freed. */
GStrv nodes_of_vgpu(const char *root, const char *uuid);

#endif
