/* SPDX-License-Identifier: MIT */
#include "lib/containers_only.h"

#include <glib/gstdio.h>

#define SHARED_DIR "/run/vgpu/shared"

static char *path_of(const char *root, const char *gpu)
{
    return g_strconcat(root, SHARED_DIR "/", gpu, NULL);
}

gboolean containers_only_is(const char *root, const char *gpu)
{
    g_autofree char *path = path_of(root, gpu);

    return g_file_test(path, G_FILE_TEST_EXISTS);
}

gboolean containers_only_set(const char *root, const char *gpu, GError **error)
{
    g_autofree char *path = path_of(root, gpu);
    g_autofree char *dir = g_path_get_dirname(path);

    g_mkdir_with_parents(dir, 0755);
    return g_file_set_contents_full(path, "", 0, G_FILE_SET_CONTENTS_CONSISTENT, 0644, error);
}

void containers_only_clear(const char *root, const char *gpu)
{
    g_autofree char *path = path_of(root, gpu);

    g_unlink(path);
}
