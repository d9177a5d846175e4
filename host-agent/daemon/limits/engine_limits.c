/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/limits/engine_limits.h"

#include "lib/engine_unit.h"
#include "lib/types.h"

#define US_PER_PERCENT 10000
#define DEFAULT_WEIGHT 100

/* Of vgpu-engine-user, and of systemd for what is set at run time. */
#define USER_DIR    "run/systemd/system"
#define CONTROL_DIR "run/systemd/system.control"

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

/* The default weight is said as "none", for any other makes the kernel schedule engines by their
 * cgroups. */
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

static gboolean has_dropins(const char *root, const char *where, const char *uuid, const char *file)
{
    g_autofree char *unit = engine_unit_name(uuid);
    g_autofree char *dir = g_strconcat(unit, ".d", NULL);
    g_autofree char *path = g_build_filename(root[0] ? root : "/", where, dir, file, NULL);

    return g_file_test(path, G_FILE_TEST_EXISTS);
}

gboolean engine_limits_can_be_set(const char *root, const char *uuid)
{
    return has_dropins(root, USER_DIR, uuid, "vgpu.conf");
}

gboolean engine_limits_were_set(const char *root, const char *uuid)
{
    return has_dropins(root, CONTROL_DIR, uuid, NULL);
}
