/* SPDX-License-Identifier: MIT */
/* The paths of the measuring and the measured programs. */
#include "card.h"

#include <gio/gio.h>

/* Below a build directory, and below the directory that vgpu-card is installed in, /usr. */
static const char *const paths[][2] = {
    [TOOL_ARBITER] = {"governor/vgpu-arbiter", "bin/vgpu-arbiter"},
    [TOOL_GUARD] = {"engine/vgpu-guard", "bin/vgpu-guard"},
    [TOOL_BENCH] = {"bench/vk-bench", "lib/mdev-vgpu/vk-bench"},
    [TOOL_LOAD] = {"bench/governor-load/governor-load", "lib/mdev-vgpu/governor-load"},
    [TOOL_COMPUTE] = {"guest/vk-compute", "lib/mdev-vgpu/vk-compute"},
    [TOOL_DOCTOR] = {"host-agent/vgpuctl", "bin/vgpuctl"},
};

/* /usr, of /usr/bin/vgpu-card. */
static char *install_prefix(void)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *dir = g_path_get_dirname(self ? self : "/usr/bin/vgpu-card");

    return g_path_get_dirname(dir);
}

char *card_tool(const Card *card, Tool tool, GError **error)
{
    g_autofree char *installed = install_prefix();
    g_autofree char *path = card->build ? g_build_filename(card->build, paths[tool][0], NULL)
                                        : g_build_filename(installed, paths[tool][1], NULL);

    if (g_file_test(path, G_FILE_TEST_IS_EXECUTABLE))
        return g_canonicalize_filename(path, NULL);
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "%s is missing", path);
    return NULL;
}

char *card_layers(const Card *card)
{
    g_autofree char *path =
        card->build ? g_build_filename(card->build, "governor/vulkan", NULL) : NULL;

    return path ? g_canonicalize_filename(path, NULL) : NULL;
}
