/* SPDX-License-Identifier: MIT */
#include "lib/containers_only.h"

#define SHARED_DIR "/run/vgpu/shared"

static char *path_of(const char *gpu)
{
    return g_build_filename(SHARED_DIR, gpu, NULL);
}

gboolean containers_only_is(HostRoot *root, const char *gpu)
{
    g_autofree char *path = path_of(gpu);

    return root_has(root, path);
}

gboolean containers_only_set(HostRoot *root, const char *gpu, GError **error)
{
    g_autofree char *path = path_of(gpu);

    return root_mkdir(root, SHARED_DIR, 0755, error) && root_write(root, path, "", 0644, error);
}

void containers_only_clear(HostRoot *root, const char *gpu)
{
    g_autofree char *path = path_of(gpu);

    root_remove(root, path);
}
