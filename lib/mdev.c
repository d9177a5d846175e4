/* SPDX-License-Identifier: MIT */
#include "lib/mdev.h"

#include <stdlib.h>
#include <string.h>

#include "lib/gpu_name.h"
#include "lib/host_root.h"

#define MDEV_BUS   "/sys/class/mdev_bus"
#define SOFT_CLASS "vgpu-soft"
/* Where the driver keeps the vGPUs of a GPU that left sysfs before they did. */
#define REMOVED_PARENT "vgpu-removed"

GStrv mdev_list(HostRoot *root)
{
    return sysfs_list(root, MDEV_DIR);
}

char *mdev_path(const char *uuid)
{
    return g_build_filename(MDEV_DIR, uuid, NULL);
}

char *mdev_group(HostRoot *root, const char *uuid)
{
    g_autofree char *dir = mdev_path(uuid);

    return sysfs_link_name(root, dir, "iommu_group");
}

char *mdev_node(HostRoot *root, const char *uuid)
{
    g_autofree char *group = mdev_group(root, uuid);

    return group ? g_build_filename("/dev/vfio", group, NULL) : NULL;
}

/* As the driver describes it, behind the text of types.d. */
static gboolean is_our_description(const char *text)
{
    return strstr(text, "vram=") && strstr(text, "window=");
}

GStrv mdev_type_ids(HostRoot *root, const char *dir)
{
    g_autofree char *types = g_build_filename(dir, "mdev_supported_types", NULL);
    g_auto(GStrv) ids = sysfs_list(root, types);
    g_autoptr(GStrvBuilder) ours = g_strv_builder_new();

    for (guint i = 0; ids[i]; i++) {
        g_autofree char *type = g_build_filename(types, ids[i], NULL);
        g_autofree char *text = sysfs_read(root, type, "description");

        if (!text || is_our_description(text))
            g_strv_builder_add(ours, ids[i]);
    }
    return g_strv_builder_end(ours);
}

void mdev_type_free(MdevType *type)
{
    g_free(type->id);
    g_free(type->gpu);
    g_free(type->description);
    g_strfreev(type->uuids);
    g_free(type);
}

GPtrArray *mdev_types_of_device(HostRoot *root, const char *gpu, const char *dir)
{
    g_autofree char *types = g_build_filename(dir, "mdev_supported_types", NULL);
    g_auto(GStrv) ids = sysfs_list(root, types);
    GPtrArray *list = g_ptr_array_new_with_free_func((GDestroyNotify)mdev_type_free);

    for (guint i = 0; ids[i]; i++) {
        g_autofree char *type_dir = g_build_filename(types, ids[i], NULL);
        g_autofree char *devices = g_build_filename(type_dir, "devices", NULL);
        MdevType *type = g_new0(MdevType, 1);

        type->id = g_strdup(ids[i]);
        type->gpu = g_strdup(gpu);
        type->description = sysfs_read(root, type_dir, "description");
        if (!type->description)
            type->description = g_strdup("");
        type->available = (guint)sysfs_number(root, type_dir, "available_instances", 0);
        type->uuids = sysfs_list(root, devices);
        g_ptr_array_add(list, type);
    }
    return list;
}

/* The kernel's name: a GPU without hardware is below its own class there, by its bare name. */
static const char *parent_of(const char *gpu)
{
    return gpu_name_is_soft(gpu) ? gpu + strlen(GPU_SOFT_PREFIX) : gpu;
}

GPtrArray *mdev_types(HostRoot *root, const char *gpu)
{
    g_autofree char *dir = g_build_filename(MDEV_BUS, parent_of(gpu), NULL);

    return mdev_types_of_device(root, gpu, dir);
}

static gboolean is_soft(HostRoot *root, const char *parent)
{
    g_autofree char *dir = g_build_filename(MDEV_BUS, parent, NULL);
    g_autofree char *subsystem = sysfs_link_name(root, dir, "subsystem");

    return g_strcmp0(subsystem, SOFT_CLASS) == 0;
}

GStrv mdev_gpus(HostRoot *root)
{
    GStrv names = sysfs_list(root, MDEV_BUS);

    for (guint i = 0; names[i]; i++) {
        if (is_soft(root, names[i])) {
            char *name = g_strconcat(GPU_SOFT_PREFIX, names[i], NULL);

            g_free(names[i]);
            names[i] = name;
        }
    }
    return names;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

GStrv mdev_uuids(HostRoot *root, const char *gpu)
{
    g_autoptr(GPtrArray) types = mdev_types(root, gpu);
    g_autoptr(GStrvBuilder) uuids = g_strv_builder_new();
    GStrv list;

    for (guint i = 0; i < types->len; i++)
        g_strv_builder_addv(uuids,
                            (const char **)((const MdevType *)g_ptr_array_index(types, i))->uuids);
    list = g_strv_builder_end(uuids);
    qsort(list, g_strv_length(list), sizeof(*list), by_text);
    return list;
}

static gboolean is_left_over(HostRoot *root, const char *path, const char *parent)
{
    g_autofree char *target = root_link(root, path);
    g_autofree char *dir = target ? g_path_get_dirname(target) : g_strdup("");
    g_autofree char *name = g_path_get_basename(dir);

    return g_str_equal(name, parent) || g_str_equal(name, REMOVED_PARENT);
}

GStrv mdev_left_over(HostRoot *root, const char *gpu)
{
    g_autoptr(GStrvBuilder) uuids = g_strv_builder_new();
    g_auto(GStrv) all = mdev_list(root);

    for (guint i = 0; all[i]; i++) {
        g_autofree char *path = mdev_path(all[i]);

        if (is_left_over(root, path, parent_of(gpu)))
            g_strv_builder_add(uuids, all[i]);
    }
    return g_strv_builder_end(uuids);
}
