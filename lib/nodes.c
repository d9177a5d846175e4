/* SPDX-License-Identifier: MIT */
#include "lib/nodes.h"

#include <string.h>

#include "lib/gpus.h"
#include "lib/nvidia.h"
#include "lib/sysfs.h"

/* sysfs is not deeper than that below a function:
 * DEVICE/virtioN/drm/card0/card0-HDMI-A-1/i2c-4/i2c-dev/i2c-4 */
#define MAX_DEPTH 8

static char *devname(const char *dir)
{
    g_autofree char *text = sysfs_read(dir, "uevent");
    g_auto(GStrv) lines = text ? g_strsplit(text, "\n", -1) : NULL;

    for (guint i = 0; lines && lines[i]; i++)
        if (g_str_has_prefix(lines[i], "DEVNAME="))
            return g_strdup(lines[i] + strlen("DEVNAME="));
    return NULL;
}

/* A vGPU, or another PCI device behind a bridge: they answer for themselves. */
static gboolean is_other_device(const char *name)
{
    return g_uuid_string_is_valid(name) || gpu_name_valid(name);
}

static void walk(GStrvBuilder *nodes, const char *dir, guint depth)
{
    g_auto(GStrv) names = sysfs_list(dir);
    char *node = devname(dir);

    if (node)
        g_strv_builder_take(nodes, node);
    for (guint i = 0; depth < MAX_DEPTH && names[i]; i++) {
        g_autofree char *path = g_build_filename(dir, names[i], NULL);

        if (!is_other_device(names[i]) && !g_file_test(path, G_FILE_TEST_IS_SYMLINK) &&
            g_file_test(path, G_FILE_TEST_IS_DIR))
            walk(nodes, path, depth + 1);
    }
}

GStrv nodes_of_device(const char *root, const PciDevice *device)
{
    g_autoptr(GStrvBuilder) nodes = g_strv_builder_new();
    int minor = nvidia_minor(root, device->address);

    walk(nodes, device->dir, 0);
    /* NVIDIA's are not in sysfs. */
    if (minor >= 0)
        g_strv_builder_take(nodes, g_strdup_printf("nvidia%d", minor));
    if (g_strcmp0(device->driver, "vfio-pci") == 0 && device->iommu_group)
        g_strv_builder_take(nodes, g_build_filename("vfio", device->iommu_group, NULL));
    return g_strv_builder_end(nodes);
}

GStrv nodes_of_vgpu(const char *root, const char *uuid)
{
    g_autoptr(GStrvBuilder) nodes = g_strv_builder_new();
    g_autofree char *dir =
        g_build_filename(root[0] ? root : "/", "sys/bus/mdev/devices", uuid, NULL);
    g_autofree char *group = sysfs_link_name(dir, "iommu_group");

    if (group)
        g_strv_builder_take(nodes, g_build_filename("vfio", group, NULL));
    walk(nodes, dir, 0);
    return g_strv_builder_end(nodes);
}
