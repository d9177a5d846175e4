/* SPDX-License-Identifier: MIT */
#include "fleet/guard_sockets.h"

#include <string.h>

/* Of Vulkan, and of CUDA. */
static const char *const names[] = {"VTEST_SOCKET_NAME=", "VGPU_CUDA_SOCKET="};

void guard_sockets_add(GPtrArray *sockets, const char *const *env)
{
    for (guint i = 0; env[i]; i++)
        for (guint k = 0; k < G_N_ELEMENTS(names); k++)
            if (g_str_has_prefix(env[i], names[k]))
                g_ptr_array_add(sockets, g_strdup(env[i] + strlen(names[k])));
}

const char *guard_sockets_missing(const GPtrArray *sockets)
{
    for (guint i = 0; i < sockets->len; i++)
        if (!g_file_test(sockets->pdata[i], G_FILE_TEST_EXISTS))
            return sockets->pdata[i];
    return NULL;
}

char *guard_sockets_sentence(const char *missing)
{
    g_autofree char *folder = g_path_get_dirname(missing);
    g_autofree char *slice = g_path_get_basename(folder);

    return g_strdup_printf("the guard of slice %s has not started: \"systemctl status "
                           "vgpu-guard@%s.socket\" and \"journalctl -u vgpud\" say why",
                           slice, slice);
}
