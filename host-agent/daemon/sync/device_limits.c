/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/sync/device_limits.h"

#include <string.h>
#include <sys/stat.h>

#include "lib/nvidia_readings.h"

#define CGROUPS "/sys/fs/cgroup"
#define PLACES  "/run/vgpu/limits"

static gboolean has_line(const char *text, const char *line)
{
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);

    return g_strv_contains((const char *const *)lines, line);
}

/*
 * There is memory of the slice's GPU, "drm/0000:03:00.0/vram0 BYTES" in dmem.capacity, that @max
 * does not limit to the slice's; a card may have several, like xe's tiles.
 */
static gboolean dmem_lacks(HostRoot *root, const char *max, const Slice *slice)
{
    g_autofree char *capacity = sysfs_read(root, CGROUPS, "dmem.capacity");
    g_auto(GStrv) regions = g_strsplit(capacity ? capacity : "", "\n", -1);
    g_autofree char *ours = g_strdup_printf("drm/%s/vram", slice->gpu);

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

static gboolean kernel_differs(HostRoot *root, const char *cgroup, const Slice *slice)
{
    g_autofree char *max = sysfs_read(root, cgroup, "dmem.max");

    return dmem_lacks(root, max, slice) || weight_differs(root, cgroup, slice);
}

static void want_place(Wants *wants, const Slice *slice, const char *cgroup)
{
    g_autofree char *place = g_build_filename(PLACES, slice->uuid, NULL);
    g_autofree char *text = g_strdup_printf("%s %" G_GUINT64_FORMAT " %s\n", slice->gpu,
                                            slice->vram, cgroup + strlen(CGROUPS));

    want_dir(wants, DIR_STAYS, PLACES, 0755);
    want_file(wants, place, text);
}

void device_limits_want(Wants *wants, HostRoot *root, const Slice *slice, const Gpu *gpu,
                        const char *cgroup, gboolean told)
{
    gboolean is_nvidia = g_strcmp0(gpu->pci->driver, NVIDIA_DRIVER) == 0;
    gboolean is_guarded = slice->transport == SLICE_TRANSPORT_GUARDED;
    struct stat dir;
    gboolean is_there = root_stat(root, cgroup, &dir) && S_ISDIR(dir.st_mode);
    gboolean differs = is_there && !is_nvidia && kernel_differs(root, cgroup, slice);
    gboolean unit = is_there && (is_nvidia || differs || told);
    g_autofree char *settings = NULL;

    /* A guard's unit sets the limit from the file whenever it starts. */
    if (is_guarded ? is_nvidia || dmem_lacks(root, NULL, slice) : unit && !slice_is_vgpu(slice))
        want_place(wants, slice, cgroup);
    if (!unit)
        return;
    if (differs)
        want_anew(wants);
    settings = is_nvidia ? g_strdup_printf("%s %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT,
                                           slice->gpu, slice->vram, (guint64)dir.st_ino)
                         : g_strdup("");
    want_unit(wants, settings);
}
