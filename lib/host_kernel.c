/* SPDX-License-Identifier: MIT */
#include "lib/host_kernel.h"

#include <stdio.h>

char *host_kernel_release(const char *root)
{
    g_autofree char *path =
        g_build_filename(root[0] ? root : "/", "proc/sys/kernel/osrelease", NULL);
    char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return NULL;
    return g_strstrip(text);
}

gboolean host_kernel_is_old(const char *release)
{
    unsigned major, minor;

    return release && sscanf(release, "%u.%u", &major, &minor) == 2 &&
           (major < 6 || (major == 6 && minor < 13));
}

gboolean host_kernel_refuses(const char *release, const char *driver)
{
    static const char *const drivers[] = {"amdgpu", "i915", "nouveau", "radeon", "xe", NULL};

    return driver && host_kernel_is_old(release) && g_strv_contains(drivers, driver);
}
