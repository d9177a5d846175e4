/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/sync/device_limits.h"

#include <string.h>
#include <sys/stat.h>

#include "lib/nvidia_readings.h"

#define CGROUPS "/sys/fs/cgroup"
#define PLACES  "/run/vgpu/limits"

/**
 * DeviceLimits
 * @told: UUID to what NVIDIA's driver was told last, and for which cgroup: its own books cannot be
 * read here
 */
struct DeviceLimits {
    HostRoot *root;
    GHashTable *told;
};

static gboolean has_line(const char *text, const char *line)
{
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);

    return g_strv_contains((const char *const *)lines, line);
}

/* "drm/0000:03:00.0/vram0 BYTES" in dmem.capacity; a card may have several, like xe's tiles. */
static gboolean dmem_differs(HostRoot *root, const char *dir, const Slice *slice)
{
    g_autofree char *capacity = sysfs_read(root, CGROUPS, "dmem.capacity");
    g_auto(GStrv) regions = g_strsplit(capacity ? capacity : "", "\n", -1);
    g_autofree char *ours = g_strdup_printf("drm/%s/vram", slice->gpu);
    g_autofree char *max = sysfs_read(root, dir, "dmem.max");

    for (guint i = 0; regions[i]; i++) {
        g_autofree char *region = g_strndup(regions[i], strcspn(regions[i], " "));
        g_autofree char *wanted = g_strdup_printf("%s %" G_GUINT64_FORMAT, region, slice->vram);

        if (g_str_has_prefix(region, ours) && !has_line(max, wanted))
            return TRUE;
    }
    return FALSE;
}

static gboolean weight_differs(HostRoot *root, const char *dir, const Slice *slice)
{
    g_autofree char *text = sysfs_read(root, CGROUPS, "cgroup.controllers");
    g_auto(GStrv) controllers = g_strsplit(text ? text : "", " ", -1);

    return slice_is_vgpu(slice) && g_strv_contains((const char *const *)controllers, "drm") &&
           sysfs_number(root, dir, "drm.weight", 0) != slice->weight;
}

/* For NVIDIA's driver. */
static char *words_of(const struct stat *dir, const Slice *slice)
{
    return g_strdup_printf("%s %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT, slice->gpu, slice->vram,
                           (guint64)dir->st_ino);
}

static char *place_of(const char *uuid)
{
    return g_build_filename(PLACES, uuid, NULL);
}

static gboolean write_place(HostRoot *root, const Slice *slice, const char *cgroup)
{
    g_autofree char *place = place_of(slice->uuid);
    g_autofree char *text = g_strdup_printf("%s %" G_GUINT64_FORMAT " %s\n", slice->gpu,
                                            slice->vram, cgroup + strlen(CGROUPS));
    g_autoptr(GError) error = NULL;

    if (root_mkdir(root, PLACES, 0755, &error) && root_write(root, place, text, 0644, &error))
        return TRUE;
    g_warning("slice %s: %s", slice->uuid, error->message);
    return FALSE;
}

/* If a guard has not started yet, its unit sets the limit from the file that is left here. */
static void leave_to_guard(DeviceLimits *limits, const Slice *slice, gboolean is_nvidia,
                           const char *cgroup)
{
    if (slice->transport == SLICE_TRANSPORT_GUARDED &&
        (is_nvidia || dmem_differs(limits->root, cgroup, slice)))
        write_place(limits->root, slice, cgroup);
}

gboolean device_limits_update(DeviceLimits *limits, const Slice *slice, const Gpu *gpu,
                              const char *cgroup)
{
    gboolean is_nvidia = g_strcmp0(gpu->pci->driver, NVIDIA_DRIVER) == 0;
    g_autofree char *words = NULL;
    struct stat dir;

    if (!root_stat(limits->root, cgroup, &dir) || !S_ISDIR(dir.st_mode)) {
        leave_to_guard(limits, slice, is_nvidia, cgroup);
        return FALSE;
    }
    words = words_of(&dir, slice);
    if (is_nvidia ? !g_strcmp0(g_hash_table_lookup(limits->told, slice->uuid), words)
                  : !dmem_differs(limits->root, cgroup, slice) &&
                        !weight_differs(limits->root, cgroup, slice))
        return FALSE;
    if (!slice_is_vgpu(slice) && !write_place(limits->root, slice, cgroup))
        return FALSE;
    if (is_nvidia)
        g_hash_table_insert(limits->told, g_strdup(slice->uuid), g_steal_pointer(&words));
    return TRUE;
}

void device_limits_forget(DeviceLimits *limits, const char *uuid)
{
    g_autofree char *place = place_of(uuid);

    g_hash_table_remove(limits->told, uuid);
    root_remove(limits->root, place);
}

DeviceLimits *device_limits_new(HostRoot *root)
{
    DeviceLimits *limits = g_new0(DeviceLimits, 1);

    limits->root = host_root_ref(root);
    limits->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return limits;
}

void device_limits_free(DeviceLimits *limits)
{
    g_hash_table_unref(limits->told);
    host_root_unref(limits->root);
    g_free(limits);
}
