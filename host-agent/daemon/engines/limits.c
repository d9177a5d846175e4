/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/engines/limits.h"

#include <string.h>

#include "lib/host_root.h"
#include "lib/sysfs.h"
#include "lib/systemd.h"
#include "lib/types.h"

#define US_PER_PERCENT 10000
#define DEFAULT_WEIGHT 100

/* Of vgpu-engine-user, and of systemd for properties that are set at run time. */
#define USER_DIR    "/run/systemd/system"
#define CONTROL_DIR "/run/systemd/system.control"

EngineLimits engine_limits_of(const Slice *slice, guint cpu, guint64 memory)
{
    EngineLimits limits = {
        .cpu_us = cpu ? (guint64)cpu * US_PER_PERCENT : LIMIT_NONE,
        .memory = memory,
        .weight = slice->weight,
    };

    if (!memory)
        limits.memory = slice->vram + slice->oversubscribe + ENGINE_OWN_MEMORY;
    else if (memory == TYPE_MEMORY_INFINITY)
        limits.memory = LIMIT_NONE;
    return limits;
}

gboolean engine_limits_equal(const EngineLimits *a, const EngineLimits *b)
{
    return a->cpu_us == b->cpu_us && a->memory == b->memory && a->weight == b->weight;
}

gboolean engine_limits_are_none(const EngineLimits *limits)
{
    static const EngineLimits none = {LIMIT_NONE, LIMIT_NONE, DEFAULT_WEIGHT};

    return engine_limits_equal(limits, &none);
}

/*
 * The default weight is given as "none", because any other makes the kernel schedule engines by
 * their cgroups.
 */
GVariant *engine_limits_properties(const EngineLimits *limits)
{
    guint64 weight = limits->weight == DEFAULT_WEIGHT ? LIMIT_NONE : limits->weight;
    GVariantBuilder builder;

    g_variant_builder_init(&builder, G_VARIANT_TYPE("a(sv)"));
    g_variant_builder_add(&builder, "(sv)", "CPUQuotaPerSecUSec",
                          g_variant_new_uint64(limits->cpu_us));
    g_variant_builder_add(&builder, "(sv)", "CPUWeight", g_variant_new_uint64(weight));
    g_variant_builder_add(&builder, "(sv)", "MemoryMax", g_variant_new_uint64(limits->memory));
    return g_variant_builder_end(&builder);
}

static gboolean has_dropins(HostRoot *root, const char *where, const char *uuid, const char *file)
{
    g_autofree char *unit = engine_unit_name(uuid);
    g_autofree char *dir = g_strconcat(unit, ".d", NULL);
    g_autofree char *path = g_build_filename(where, dir, file, NULL);

    return root_has(root, path);
}

gboolean engine_limits_can_be_set(HostRoot *root, const char *uuid)
{
    return has_dropins(root, USER_DIR, uuid, "vgpu.conf");
}

gboolean engine_limits_were_set(HostRoot *root, const char *uuid)
{
    return has_dropins(root, CONTROL_DIR, uuid, NULL);
}

#define CGROUPS "/sys/fs/cgroup"

static gboolean has_line(const char *text, const char *line)
{
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);

    return g_strv_contains((const char *const *)lines, line);
}

/* "drm/0000:03:00.0/vram0 BYTES" in dmem.capacity; a card may have several, like xe's tiles. */
static gboolean dmem_differs(HostRoot *root, const char *capacity, const char *dir,
                             const Slice *slice)
{
    g_auto(GStrv) regions = g_strsplit(capacity, "\n", -1);
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
    return sysfs_number(root, dir, "drm.weight", 0) != slice->weight;
}

gboolean device_limits_differ(HostRoot *root, const Slice *slice)
{
    g_autofree char *text = sysfs_read(root, CGROUPS, "cgroup.controllers");
    g_auto(GStrv) controllers = g_strsplit(text ? text : "", " ", -1);
    g_autofree char *capacity = sysfs_read(root, CGROUPS, "dmem.capacity");
    g_autofree char *dir = engine_unit_cgroup(slice->uuid);

    if (!root_is(root, dir, G_FILE_TEST_IS_DIR))
        return FALSE;
    if (capacity && dmem_differs(root, capacity, dir, slice))
        return TRUE;
    return g_strv_contains((const char *const *)controllers, "drm") &&
           weight_differs(root, dir, slice);
}
