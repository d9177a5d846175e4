/* SPDX-License-Identifier: MIT */
#include "lib/engine_unit.h"

#include <string.h>

#include "lib/sysfs.h"

#define ENGINES "sys/fs/cgroup/system.slice/system-vgpu\\x2dengine.slice"

char *engine_unit_name(const char *uuid)
{
    return g_strconcat("vgpu-engine@", uuid, ".service", NULL);
}

char *engine_unit_cgroup(const char *root, const char *uuid)
{
    g_autofree char *unit = engine_unit_name(uuid);

    return g_build_filename(root[0] ? root : "/", ENGINES, unit, NULL);
}

guint64 engine_unit_cpu_us(const char *root, const char *uuid)
{
    static const char key[] = "usage_usec ";
    g_autofree char *dir = engine_unit_cgroup(root, uuid);
    g_autofree char *text = sysfs_read(dir, "cpu.stat");
    const char *at = text ? strstr(text, key) : NULL;

    return at ? g_ascii_strtoull(at + strlen(key), NULL, 10) : 0;
}

GStrv engine_unit_processes(const char *root, const char *uuid)
{
    g_autofree char *dir = engine_unit_cgroup(root, uuid);
    g_autofree char *text = sysfs_read(dir, "cgroup.procs");

    return g_strsplit(text ? text : "", "\n", -1);
}
