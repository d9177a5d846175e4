/* SPDX-License-Identifier: MIT */
#include "lib/mdev_type.h"

#include "lib/sysfs.h"

void mdev_type_free(MdevType *type)
{
    g_free(type->id);
    g_free(type->gpu);
    g_free(type->description);
    g_free(type);
}

static void free_type(void *data)
{
    mdev_type_free(data);
}

static guint count_instances(const char *dir)
{
    g_autofree char *devices = g_build_filename(dir, "devices", NULL);
    g_auto(GStrv) uuids = sysfs_list(devices);

    return g_strv_length(uuids);
}

GPtrArray *mdev_types_read(const char *gpu, const char *dir)
{
    g_autofree char *types = g_build_filename(dir, "mdev_supported_types", NULL);
    g_auto(GStrv) ids = sysfs_list(types);
    GPtrArray *list = g_ptr_array_new_with_free_func(free_type);

    for (guint i = 0; ids[i]; i++) {
        g_autofree char *type_dir = g_build_filename(types, ids[i], NULL);
        MdevType *type = g_new0(MdevType, 1);

        type->id = g_strdup(ids[i]);
        type->gpu = g_strdup(gpu);
        type->description = sysfs_read(type_dir, "description");
        type->available = (guint)sysfs_number(type_dir, "available_instances", 0);
        type->instances = count_instances(type_dir);
        g_ptr_array_add(list, type);
    }
    return list;
}
