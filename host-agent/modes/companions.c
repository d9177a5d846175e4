/* SPDX-License-Identifier: MIT */
#include "companions.h"

#include <net/if.h>
#include <string.h>

#include "holders.h"
#include "nodes.h"
#include "sysfs.h"

#define PCI_CLASS_STORAGE 0x01
#define PCI_CLASS_NETWORK 0x02

/* "0000:01:00.1" and "0000:01:00.0" are functions of one card. */
static gboolean same_slot(const char *a, const char *b)
{
    const char *function = strrchr(a, '.');

    return function && strncmp(a, b, (gsize)(function - a + 1)) == 0;
}

char *companion_network(const PciDevice *device)
{
    g_autofree char *net = g_build_filename(device->dir, "net", NULL);
    g_auto(GStrv) names = sysfs_list(net);

    for (guint i = 0; names[i]; i++) {
        g_autofree char *dir = g_build_filename(net, names[i], NULL);

        if (sysfs_number(dir, "flags", IFF_UP) & IFF_UP)
            return g_strdup_printf("network interface %s of %s is up", names[i], device->address);
    }
    return NULL;
}

/* The word @name in a line of /proc/mounts or /proc/swaps. */
static gboolean is_named(const char *root, const char *file, const char *name)
{
    g_autofree char *dir = g_build_filename(root[0] ? root : "/", "proc", NULL);
    g_autofree char *text = sysfs_read(dir, file);
    g_autofree char *node = g_strconcat("/dev/", name, " ", NULL);

    return text && strstr(text, node);
}

static gboolean is_held(const char *dir)
{
    g_autofree char *holders = g_build_filename(dir, "holders", NULL);
    g_auto(GStrv) names = sysfs_list(holders);

    return names[0] != NULL;
}

/* A disk or a partition that is mounted, swapped to, or a part of something else (LVM, RAID). */
static char *busy_disk(const char *root, const PciDevice *device)
{
    g_auto(GStrv) nodes = nodes_of_device(root, device);

    for (guint i = 0; nodes[i]; i++) {
        g_autofree char *dir =
            g_build_filename(root[0] ? root : "/", "sys/class/block", nodes[i], NULL);

        if (is_named(root, "mounts", nodes[i]) || is_named(root, "swaps", nodes[i]) || is_held(dir))
            return g_strdup_printf("disk %s of %s is in use", nodes[i], device->address);
    }
    return NULL;
}

static char *open_node(const char *root, const PciDevice *device)
{
    g_auto(GStrv) nodes = nodes_of_device(root, device);
    g_autoptr(GPtrArray) holders = holders_find(root, (const char *const *)nodes);
    const Holder *first = holders->len ? g_ptr_array_index(holders, 0) : NULL;

    return first ? g_strdup_printf("%s has /dev/%s of %s open", first->who, first->node,
                                   device->address)
                 : NULL;
}

static char *use_of(const char *root, const Gpu *gpu, const PciDevice *device)
{
    char *use = open_node(root, device);

    if (use)
        return use;
    switch (device->class >> 16) {
    case PCI_CLASS_NETWORK:
        return companion_network(device);
    case PCI_CLASS_STORAGE:
        return busy_disk(root, device);
    default:
        if (same_slot(device->address, gpu->pci->address))
            return NULL;
        return g_strdup_printf("%s (%s) is in the same IOMMU group, and may be in use; unbind its "
                               "driver yourself if it is not",
                               device->address, device->driver);
    }
}

void companions_add_users(GStrvBuilder *users, const char *root, const Gpu *gpu)
{
    for (guint i = 0; gpu->group_in_use[i]; i++) {
        g_autoptr(PciDevice) device = pci_device_read(root, gpu->group_in_use[i]);
        char *use = device ? use_of(root, gpu, device) : NULL;

        if (use)
            g_strv_builder_take(users, use);
    }
}

GStrv companions_moved(const char *root, const Gpu *gpu)
{
    g_autoptr(GStrvBuilder) moved = g_strv_builder_new();

    for (guint i = 0; gpu->group[i]; i++) {
        g_autoptr(PciDevice) device = pci_device_read(root, gpu->group[i]);
        g_autofree char *override = device ? sysfs_read(device->dir, "driver_override") : NULL;

        if (g_strcmp0(override, "vfio-pci") == 0)
            g_strv_builder_add(moved, device->address);
    }
    return g_strv_builder_end(moved);
}
