/* SPDX-License-Identifier: MIT */
#include "lib/nvidia.h"

#include <string.h>

#include "lib/sysfs.h"

#define NVIDIA "proc/driver/nvidia"
#define MINOR  "Device Minor:"

int nvidia_minor(const char *root, const char *address)
{
    g_autofree char *dir = g_build_filename(root[0] ? root : "/", NVIDIA, "gpus", address, NULL);
    g_autofree char *text = sysfs_read(dir, "information");
    const char *minor = text ? strstr(text, MINOR) : NULL;

    return minor ? (int)g_ascii_strtoll(minor + strlen(MINOR), NULL, 10) : -1;
}

GStrv nvidia_instances(const char *root, const char *address)
{
    int minor = nvidia_minor(root, address);
    g_autofree char *dir = g_strdup_printf("%s/" NVIDIA "/capabilities/gpu%d/mig", root, minor);
    g_auto(GStrv) names = sysfs_list(dir);
    g_autoptr(GStrvBuilder) instances = g_strv_builder_new();

    for (guint i = 0; minor >= 0 && names[i]; i++)
        if (g_str_has_prefix(names[i], "gi"))
            g_strv_builder_add(instances, names[i]);
    return g_strv_builder_end(instances);
}
