/* SPDX-License-Identifier: MIT */
/*
 * How far two PCI devices are from each other, in the words that `nvidia-smi topo` taught
 * operators.
 */
#ifndef INVENTORY_TOPOLOGY_H
#define INVENTORY_TOPOLOGY_H

#include "lib/pci.h"

/* From near to far. */
typedef enum {
    DISTANCE_SELF, /* X: the same device */
    DISTANCE_PIX,  /* at most one PCIe switch between them */
    DISTANCE_PXB,  /* several PCIe switches, no host bridge */
    DISTANCE_PHB,  /* a PCIe host bridge, typically the CPU */
    DISTANCE_NODE, /* host bridges of one NUMA node */
    DISTANCE_SYS,  /* the interconnect between NUMA nodes, or it is not known */
} Distance;

Distance topology_distance(const PciDevice *a, const PciDevice *b);

/* "X", "PIX" … */
const char *distance_name(Distance distance);

#endif
