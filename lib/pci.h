/* SPDX-License-Identifier: MIT */
/* A PCI function in sysfs (Documentation/ABI/testing/sysfs-bus-pci). */
#ifndef LIB_PCI_H
#define LIB_PCI_H

#include <glib.h>

#include "lib/host_root.h"

/**
 * PciLink - a PCI Express link
 * @speed: transfers per second in units of 100 MT, as 160 for 16 GT/s; 0: no link, or not known
 * @width: lanes
 */
typedef struct {
    guint speed;
    guint width;
} PciLink;

/**
 * PciDevice
 * @address: "0000:02:00.0", or "soft:NAME": a GPU without a PCI device, whose numbers are 0
 * @dir: its path in /sys/devices without links, so that the components are its bridges
 * @class: 24 bits: class, subclass, interface
 * @driver: NULL: none is bound
 * @iommu_group: NULL: the host has no IOMMU, or it is disabled
 * @numa_node: -1: not known
 * @total_vfs: maximum of SR-IOV virtual functions
 * @vfs: current number of them
 * @physfn: address of its physical function if it is a virtual function, or NULL
 */
typedef struct {
    char *address;
    char *dir;
    guint vendor;
    guint device;
    guint class;
    char *driver;
    char *iommu_group;
    int numa_node;
    PciLink link;
    PciLink max_link;
    guint total_vfs;
    guint vfs;
    char *physfn;
} PciDevice;

/* Bytes a second, one way, without the overhead of packets; 0: no link. */
guint64 pci_link_bandwidth(const PciLink *link);

/* NULL if there is no such device (any more). */
PciDevice *pci_device_read(HostRoot *root, const char *address);

void pci_device_free(PciDevice *device);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PciDevice, pci_device_free)

/* The virtual parent that the driver makes for "soft:NAME", whether it exists now or not. */
PciDevice *pci_device_soft(const char *address);

/* Addresses of all PCI devices, sorted. */
GStrv pci_addresses(HostRoot *root);

/* Addresses of all devices in an IOMMU group, sorted. */
GStrv pci_group_members(HostRoot *root, const char *iommu_group);

/* The distance of two PCI devices, in the words of `nvidia-smi topo`, which operators know. */
/* From near to far. */
typedef enum {
    DISTANCE_SELF, /* X: the same device */
    DISTANCE_PIX,  /* at most one PCIe switch between them */
    DISTANCE_PXB,  /* several PCIe switches, no host bridge */
    DISTANCE_PHB,  /* a PCIe host bridge, typically the CPU */
    DISTANCE_NODE, /* host bridges of one NUMA node */
    DISTANCE_SYS,  /* the interconnect between NUMA nodes, or not known */
} Distance;

Distance topology_distance(const PciDevice *a, const PciDevice *b);

/* "X", "PIX" … */
const char *distance_name(Distance distance);

/* Device nodes by which programs use a device. */
/*
 * Nodes of a PCI device, as "dri/renderD128", "vfio/16", "snd/pcmC1D3p": those that its driver made
 * below it, and VFIO's if it is bound to that. Not those of its vGPUs. To be freed.
 */
GStrv nodes_of_device(HostRoot *root, const PciDevice *device);

/* The VFIO node of a vGPU's IOMMU group; empty if it has none. To be freed. */
GStrv nodes_of_vgpu(HostRoot *root, const char *uuid);

#endif
