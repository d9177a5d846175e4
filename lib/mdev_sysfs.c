/* SPDX-License-Identifier: MIT */
#include "lib/mdev_sysfs.h"

#include <string.h>

#include "lib/gpus.h"

#define MDEV_BUS "/sys/class/mdev_bus"
#define MDEV_DEVICES "/sys/bus/mdev/devices"
#define SOFT_CLASS "vgpu-soft"
/* Where the driver keeps vGPUs of a GPU that has left sysfs before they could. */
#define REMOVED_PARENT "vgpu-removed"

static void type_free(MdevType *type)
{
    g_free(type->name);
    g_free(type->description);
    g_strfreev(type->uuids);
    g_free(type);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names in a directory, sorted; empty where it can't be read. */
static char **list_names(const char *path)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir)))
        g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, compare_names);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_steal(names, NULL);
}

static char *read_text(const char *dir, const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return g_strdup("");
    return g_strstrip(text);
}

/* A soft GPU's device is in a class of the driver's own and does not have "soft:" in its name. */
static gboolean parent_is_soft(const char *bus, const char *parent)
{
    g_autofree char *path = g_build_filename(bus, parent, "subsystem", NULL);
    g_autofree char *target = g_file_read_link(path, NULL);
    g_autofree char *subsystem = target ? g_path_get_basename(target) : NULL;

    return g_strcmp0(subsystem, SOFT_CLASS) == 0;
}

char **mdev_gpus(const char *root)
{
    g_autofree char *path = g_strconcat(root, MDEV_BUS, NULL);
    char **names = list_names(path);

    for (guint i = 0; names[i]; i++) {
        if (parent_is_soft(path, names[i])) {
            char *name = g_strconcat(GPU_SOFT_PREFIX, names[i], NULL);

            g_free(names[i]);
            names[i] = name;
        }
    }
    return names;
}

GPtrArray *mdev_types(const char *root, const char *gpu)
{
    const char *parent = gpu_name_is_soft(gpu) ? gpu + strlen(GPU_SOFT_PREFIX) : gpu;
    g_autofree char *path = g_strdup_printf("%s" MDEV_BUS "/%s/mdev_supported_types", root, parent);
    GPtrArray *types = g_ptr_array_new_with_free_func((GDestroyNotify)type_free);
    g_auto(GStrv) names = list_names(path);

    for (guint i = 0; names[i]; i++) {
        g_autofree char *dir = g_build_filename(path, names[i], NULL);
        g_autofree char *devices = g_build_filename(dir, "devices", NULL);
        g_autofree char *available = read_text(dir, "available_instances");
        MdevType *type = g_new0(MdevType, 1);

        type->name = g_strdup(names[i]);
        type->description = read_text(dir, "description");
        type->available = (guint)g_ascii_strtoull(available, NULL, 10);
        type->uuids = list_names(devices);
        g_ptr_array_add(types, type);
    }
    return types;
}

char **mdev_uuids(const char *root, const char *gpu)
{
    g_autoptr(GPtrArray) types = mdev_types(root, gpu);
    g_autoptr(GPtrArray) uuids = g_ptr_array_new();

    for (guint i = 0; i < types->len; i++) {
        const MdevType *type = g_ptr_array_index(types, i);

        for (guint j = 0; type->uuids[j]; j++)
            g_ptr_array_add(uuids, g_strdup(type->uuids[j]));
    }
    g_ptr_array_sort(uuids, compare_names);
    g_ptr_array_add(uuids, NULL);
    return (char **)g_ptr_array_steal(uuids, NULL);
}

static gboolean is_left_over(const char *devices, const char *uuid, const char *parent)
{
    g_autofree char *path = g_build_filename(devices, uuid, NULL);
    g_autofree char *target = g_file_read_link(path, NULL);
    g_autofree char *dir = target ? g_path_get_dirname(target) : g_strdup("");
    g_autofree char *name = g_path_get_basename(dir);

    return g_str_equal(name, parent) || g_str_equal(name, REMOVED_PARENT);
}

char **mdev_left_over(const char *root, const char *gpu)
{
    const char *parent = gpu_name_is_soft(gpu) ? gpu + strlen(GPU_SOFT_PREFIX) : gpu;
    g_autofree char *devices = g_strconcat(root, MDEV_DEVICES, NULL);
    g_autoptr(GPtrArray) uuids = g_ptr_array_new();
    g_auto(GStrv) names = list_names(devices);

    for (guint i = 0; names[i]; i++) {
        if (is_left_over(devices, names[i], parent))
            g_ptr_array_add(uuids, g_strdup(names[i]));
    }
    g_ptr_array_add(uuids, NULL);
    return (char **)g_ptr_array_steal(uuids, NULL);
}
