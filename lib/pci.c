/* SPDX-License-Identifier: MIT */
#include "lib/pci.h"

#include <string.h>

#include "lib/gpus.h"
#include "lib/hardware.h"
#include "lib/host_root.h"
#include "lib/mdev.h"
#include "lib/sysfs.h"

#define PCI_DEVICES  "/sys/bus/pci/devices"
#define IOMMU_GROUPS "/sys/kernel/iommu_groups"
#define SOFT_DEVICES "/sys/devices/virtual/vgpu-soft"

/* "16.0 GT/s PCIe"; "Unknown" where the link is down. */
static guint link_speed(HostRoot *root, const char *dir, const char *attribute)
{
    g_autofree char *text = sysfs_read(root, dir, attribute);

    return text ? (guint)(g_ascii_strtod(text, NULL) * 10 + 0.5) : 0;
}

/* The kernel says 255 if it does not know. */
static guint link_width(HostRoot *root, const char *dir, const char *attribute)
{
    gint64 width = sysfs_number(root, dir, attribute, 0);

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

PciDevice *pci_device_read(HostRoot *root, const char *address)
{
    g_autofree char *link = g_build_filename(PCI_DEVICES, address, NULL);
    g_autofree char *dir = root_resolve(root, link);
    PciDevice *device;

    if (!dir)
        return NULL;
    device = g_new0(PciDevice, 1);
    device->address = g_strdup(address);
    device->vendor = (guint)sysfs_number(root, dir, "vendor", 0);
    device->device = (guint)sysfs_number(root, dir, "device", 0);
    device->class = (guint)sysfs_number(root, dir, "class", 0);
    device->driver = sysfs_link_name(root, dir, "driver");
    device->iommu_group = sysfs_link_name(root, dir, "iommu_group");
    device->numa_node = (int)sysfs_number(root, dir, "numa_node", -1);
    device->link.speed = link_speed(root, dir, "current_link_speed");
    device->link.width = link_width(root, dir, "current_link_width");
    device->max_link.speed = link_speed(root, dir, "max_link_speed");
    device->max_link.width = link_width(root, dir, "max_link_width");
    device->total_vfs = (guint)sysfs_number(root, dir, "sriov_totalvfs", 0);
    device->vfs = (guint)sysfs_number(root, dir, "sriov_numvfs", 0);
    device->physfn = sysfs_link_name(root, dir, "physfn");
    device->dir = g_strdup(dir);
    return device;
}

PciDevice *pci_device_soft(const char *address)
{
    PciDevice *device = g_new0(PciDevice, 1);

    device->address = g_strdup(address);
    device->dir = g_build_filename(SOFT_DEVICES, address + strlen(GPU_SOFT_PREFIX), NULL);
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

GStrv pci_addresses(HostRoot *root)
{
    return sysfs_list(root, PCI_DEVICES);
}

GStrv pci_group_members(HostRoot *root, const char *iommu_group)
{
    g_autofree char *dir = g_build_filename(IOMMU_GROUPS, iommu_group, "devices", NULL);

    return sysfs_list(root, dir);
}

/* A device directly below a port of a switch: the port, and the device itself. */
#define BELOW_ONE_SWITCH 2u

/* The components of its path in /sys/devices, from the host bridge ("pci0000:00") on. */
static GStrv bridges_of(const PciDevice *device)
{
    const char *host_bridge = strstr(device->dir, "/devices/");

    return g_strsplit(host_bridge ? host_bridge + strlen("/devices/") : device->dir, "/", -1);
}

static Distance between_host_bridges(const PciDevice *a, const PciDevice *b)
{
    return a->numa_node >= 0 && a->numa_node == b->numa_node ? DISTANCE_NODE : DISTANCE_SYS;
}

Distance topology_distance(const PciDevice *a, const PciDevice *b)
{
    g_auto(GStrv) left = bridges_of(a);
    g_auto(GStrv) right = bridges_of(b);
    guint common = 0;

    if (g_str_equal(a->address, b->address))
        return DISTANCE_SELF;
    if (gpu_name_is_soft(a->address) || gpu_name_is_soft(b->address))
        return DISTANCE_SYS;
    while (left[common] && right[common] && g_str_equal(left[common], right[common]))
        common++;
    if (common == 0)
        return between_host_bridges(a, b);
    if (common == 1)
        return DISTANCE_PHB;
    if (g_strv_length(left) - common <= BELOW_ONE_SWITCH &&
        g_strv_length(right) - common <= BELOW_ONE_SWITCH)
        return DISTANCE_PIX;
    return DISTANCE_PXB;
}

const char *distance_name(Distance distance)
{
    static const char *const names[] = {
        [DISTANCE_SELF] = "X",  [DISTANCE_PIX] = "PIX",   [DISTANCE_PXB] = "PXB",
        [DISTANCE_PHB] = "PHB", [DISTANCE_NODE] = "NODE", [DISTANCE_SYS] = "SYS",
    };

    return names[distance];
}

/* sysfs is not deeper than that below a function:
 * DEVICE/virtioN/drm/card0/card0-HDMI-A-1/i2c-4/i2c-dev/i2c-4 */
#define MAX_DEPTH 8

static char *devname(HostRoot *root, const char *dir)
{
    g_autofree char *text = sysfs_read(root, dir, "uevent");
    g_auto(GStrv) lines = text ? g_strsplit(text, "\n", -1) : NULL;

    for (guint i = 0; lines && lines[i]; i++)
        if (g_str_has_prefix(lines[i], "DEVNAME="))
            return g_strdup(lines[i] + strlen("DEVNAME="));
    return NULL;
}

/* A vGPU, or another PCI device behind a bridge: they have nodes of their own. */
static gboolean is_other_device(const char *name)
{
    return g_uuid_string_is_valid(name) || gpu_name_valid(name);
}

static void walk(GStrvBuilder *nodes, HostRoot *root, const char *dir, guint depth)
{
    g_auto(GStrv) names = sysfs_list(root, dir);
    char *node = devname(root, dir);

    if (node)
        g_strv_builder_take(nodes, node);
    for (guint i = 0; depth < MAX_DEPTH && names[i]; i++) {
        g_autofree char *path = g_build_filename(dir, names[i], NULL);

        if (!is_other_device(names[i]) && !root_is(root, path, G_FILE_TEST_IS_SYMLINK) &&
            root_is(root, path, G_FILE_TEST_IS_DIR))
            walk(nodes, root, path, depth + 1);
    }
}

GStrv nodes_of_device(HostRoot *root, const PciDevice *device)
{
    g_autoptr(GStrvBuilder) nodes = g_strv_builder_new();
    int minor = nvidia_minor(root, device->address);

    walk(nodes, root, device->dir, 0);
    /* NVIDIA's are not in sysfs. */
    if (minor >= 0)
        g_strv_builder_take(nodes, g_strdup_printf("nvidia%d", minor));
    if (g_strcmp0(device->driver, "vfio-pci") == 0 && device->iommu_group)
        g_strv_builder_take(nodes, g_build_filename("vfio", device->iommu_group, NULL));
    return g_strv_builder_end(nodes);
}

GStrv nodes_of_vgpu(HostRoot *root, const char *uuid)
{
    g_autoptr(GStrvBuilder) nodes = g_strv_builder_new();
    g_autofree char *dir = mdev_path(uuid);
    g_autofree char *group = mdev_group(root, uuid);

    if (group)
        g_strv_builder_take(nodes, g_build_filename("vfio", group, NULL));
    walk(nodes, root, dir, 0);
    return g_strv_builder_end(nodes);
}
