/* SPDX-License-Identifier: MIT */
/* vgpuctl gpu clear: an operator says that a GPU is good. */
#include "host-agent/vgpuctl/command.h"

gboolean gpu_clear_command(Client *client, const Options *options, char **args,
                           GError **error)
{
    g_autoptr(VgpuGpu) gpu = client_gpu(client, args[0], error);

    (void)options;
    return gpu && vgpu_gpu_call_clear_health_sync(gpu, NULL, error);
}
