/* SPDX-License-Identifier: MIT */
/* A GPU's hardware: its memory, and its PCI device. */
#ifndef LIB_PCI_H
#define LIB_PCI_H

#include <glib.h>

#include "lib/host_root.h"

/* Base classes of GPUs; accelerators without a display are some of AMD's. */
#define PCI_CLASS_DISPLAY     0x03
#define PCI_CLASS_ACCELERATOR 0x12

/* A physical GPU in sysfs. */

/**
 * Hardware - a PCI display device
 * @driver: name of the bound driver
 * @ids: "vendor:device", four hex digits each
 */
typedef struct {
    char *dir;
    char *driver;
    char *ids;
} Hardware;

void hardware_free(Hardware *hardware);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Hardware, hardware_free)

/*
 * @address: a PCI address. REGISTRAR_ERROR_ABSENT: no such device, or no driver bound to it;
 * REGISTRAR_ERROR_REFUSED: not a GPU, or one that is assigned as a whole.
 */
Hardware *hardware_find(HostRoot *root, const char *address, GError **error);

/*
 * The memory of the GPU at @dir in sysfs, which has @driver, and in @source the origin of that
 * number. The best source is used: the vendor driver's own count, else the largest prefetchable
 * BAR.
 */
gboolean hardware_vram(HostRoot *root, const char *dir, const char *driver, guint64 *bytes,
                       char **source, GError **error);

/*
 * The GPU at @dir is part of a processor and has amdgpu: its memory is the host's, of which its
 * driver takes some for itself ("VRAM", often 512 MiB) and the rest as it is needed ("GTT"). By the
 * driver's files, not tried on the hardware.
 */
gboolean amdgpu_is_apu(HostRoot *root, const char *dir);

/* Both together. @which: "total" or "used". FALSE: the driver does not report them. */
gboolean amdgpu_apu_memory(HostRoot *root, const char *dir, const char *which, guint64 *bytes);

/*
 * GPUs in NVIDIA's /proc/driver/nvidia. Written from its documentation, not tried on the hardware.
 */
/* The number in /dev/nvidiaN of the GPU at @address; -1: it does not have that driver. */
int nvidia_minor(HostRoot *root, const char *address);

/* Its MIG instances, as "gi1"; empty if there are none. To be freed. */
GStrv nvidia_instances(HostRoot *root, const char *address);

/*
 * What KVM before Linux 6.13 does to a vGPU's window. It takes a reference to each page that it
 * maps, and refuses (EFAULT) one that has none of its own, as tail pages of the blocks that GPU
 * drivers allocate; QEMU then stops. And what it maps for a nested guest it keeps when the driver
 * takes the page back. 6.13 does neither.
 */
/* What to do about it, the end of a sentence. */
#define HOST_KERNEL_NEWER                                                                          \
    "install Linux 6.13 or newer; Debian 13 has one in its backports: apt install -t "             \
    "trixie-backports linux-image-amd64 linux-headers-amd64"

/* In the form of uname -r; NULL: unknown. To be freed. */
char *host_kernel_release(HostRoot *root);

/* It is older than 6.13. NULL, or a release that cannot be parsed, is not. */
gboolean host_kernel_is_old(const char *release);

/* Its KVM refuses memory of a GPU that has @driver (NULL: none): the driver allocates blocks, by
 * TTM or as huge pages. */
gboolean host_kernel_refuses(const char *release, const char *driver);

/* A PCI function in sysfs (Documentation/ABI/testing/sysfs-bus-pci). */

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
