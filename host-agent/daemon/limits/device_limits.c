/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/limits/device_limits.h"

#include <string.h>

#include "lib/engine_unit.h"
#include "lib/sysfs.h"

#define CGROUPS "sys/fs/cgroup"

static gboolean has_line(const char *text, const char *line)
{
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);

    return g_strv_contains((const char *const *)lines, line);
}

/* "drm/0000:03:00.0/vram0 BYTES" in dmem.capacity; a card may have several, as xe's tiles. */
static gboolean dmem_differs(const char *capacity, const char *dir, const Slice *slice)
{
    g_auto(GStrv) regions = g_strsplit(capacity, "\n", -1);
    g_autofree char *ours = g_strdup_printf("drm/%s/vram", slice->gpu);
    g_autofree char *max = sysfs_read(dir, "dmem.max");

    for (guint i = 0; regions[i]; i++) {
        g_autofree char *region = g_strndup(regions[i], strcspn(regions[i], " "));
        g_autofree char *wanted = g_strdup_printf("%s %" G_GUINT64_FORMAT, region, slice->vram);

        if (g_str_has_prefix(region, ours) && !has_line(max, wanted))
            return TRUE;
    }
    return FALSE;
}

static gboolean weight_differs(const char *dir, const Slice *slice)
{
    return sysfs_number(dir, "drm.weight", 0) != slice->weight;
}

gboolean device_limits_differ(const char *root, const Slice *slice)
{
    g_autofree char *top = g_build_filename(root[0] ? root : "/", CGROUPS, NULL);
    g_autofree char *text = sysfs_read(top, "cgroup.controllers");
    g_auto(GStrv) controllers = g_strsplit(text ? text : "", " ", -1);
    g_autofree char *capacity = sysfs_read(top, "dmem.capacity");
    g_autofree char *dir = engine_unit_cgroup(root, slice->uuid);

    if (!g_file_test(dir, G_FILE_TEST_IS_DIR))
        return FALSE;
    if (capacity && dmem_differs(capacity, dir, slice))
        return TRUE;
    return g_strv_contains((const char *const *)controllers, "drm") && weight_differs(dir, slice);
}
