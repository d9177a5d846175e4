/* SPDX-License-Identifier: MIT */
#include "lib/gpu_name.h"

#include <string.h>
#include <linux/vgpu.h>

gboolean gpu_name_is_soft(const char *name)
{
    return g_str_has_prefix(name, GPU_SOFT_PREFIX);
}

static gboolean soft_name_valid(const char *name)
{
    return g_ascii_isalnum(name[0]) && strlen(name) + strlen(GPU_SOFT_PREFIX) < VGPU_GPU_NAME_LEN &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == strlen(name);
}

gboolean gpu_name_valid(const char *name)
{
    if (gpu_name_is_soft(name))
        return soft_name_valid(name + strlen(GPU_SOFT_PREFIX));
    return g_regex_match_simple("^[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\\.[0-7]$", name,
                                G_REGEX_DOLLAR_ENDONLY, 0);
}
