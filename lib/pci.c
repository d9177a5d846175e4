/* SPDX-License-Identifier: MIT */
#include "lib/pci.h"

#include <stdlib.h>
#include <string.h>

#include "lib/gpus.h"
#include "lib/sysfs.h"

#define PCI_DEVICES  "sys/bus/pci/devices"
#define IOMMU_GROUPS "sys/kernel/iommu_groups"
#define SOFT_DEVICES "sys/devices/virtual/vgpu-soft"

/* "16.0 GT/s PCIe"; "Unknown" where the link is down. */
static guint link_speed(const char *dir, const char *attribute)
{
    g_autofree char *text = sysfs_read(dir, attribute);

    return text ? (guint)(g_ascii_strtod(text, NULL) * 10 + 0.5) : 0;
}

/* The kernel says 255 where it does not know. */
static guint link_width(const char *dir, const char *attribute)
{
    gint64 width = sysfs_number(dir, attribute, 0);

    return width > 0 && width < 255 ? (guint)width : 0;
}

/* 8b/10b up to 5 GT/s, 128b/130b above; from 64 GT/s on (PCIe 6) in units of fixed size. */
guint64 pci_link_bandwidth(const PciLink *link)
{
    guint64 bits = (guint64)link->speed * 100000000 * link->width;

    if (link->speed <= 50)
        return bits / 10;
    return link->speed < 640 ? bits * 128 / 130 / 8 : bits / 8;
}

PciDevice *pci_device_read(const char *root, const char *address)
{
    g_autofree char *link = g_build_filename(root[0] ? root : "/", PCI_DEVICES, address, NULL);
    g_autofree char *dir = realpath(link, NULL);
    PciDevice *device;

    if (!dir)
        return NULL;
    device = g_new0(PciDevice, 1);
    device->address = g_strdup(address);
    device->vendor = (guint)sysfs_number(dir, "vendor", 0);
    device->device = (guint)sysfs_number(dir, "device", 0);
    device->class = (guint)sysfs_number(dir, "class", 0);
    device->driver = sysfs_link_name(dir, "driver");
    device->iommu_group = sysfs_link_name(dir, "iommu_group");
    device->numa_node = (int)sysfs_number(dir, "numa_node", -1);
    device->link.speed = link_speed(dir, "current_link_speed");
    device->link.width = link_width(dir, "current_link_width");
    device->max_link.speed = link_speed(dir, "max_link_speed");
    device->max_link.width = link_width(dir, "max_link_width");
    device->total_vfs = (guint)sysfs_number(dir, "sriov_totalvfs", 0);
    device->vfs = (guint)sysfs_number(dir, "sriov_numvfs", 0);
    device->physfn = sysfs_link_name(dir, "physfn");
    device->dir = g_strdup(dir);
    return device;
}

PciDevice *pci_device_soft(const char *root, const char *address)
{
    PciDevice *device = g_new0(PciDevice, 1);

    device->address = g_strdup(address);
    device->dir = g_build_filename(root[0] ? root : "/", SOFT_DEVICES,
                                   address + strlen(GPU_SOFT_PREFIX), NULL);
    device->numa_node = -1;
    return device;
}

void pci_device_free(PciDevice *device)
{
    g_free(device->address);
    g_free(device->dir);
    g_free(device->driver);
    g_free(device->iommu_group);
    g_free(device->physfn);
    g_free(device);
}

GStrv pci_addresses(const char *root)
{
    g_autofree char *dir = g_build_filename(root[0] ? root : "/", PCI_DEVICES, NULL);

    return sysfs_list(dir);
}

GStrv pci_group_members(const char *root, const char *iommu_group)
{
    g_autofree char *dir =
        g_build_filename(root[0] ? root : "/", IOMMU_GROUPS, iommu_group, "devices", NULL);

    return sysfs_list(dir);
}
