/* SPDX-License-Identifier: MIT */
/* vgpuctl reload: /etc/vgpu is read anew. */
#include "host-agent/vgpuctl/command.h"

gboolean reload_command(Client *client, const Options *options, char **args, GError **error)
{
    VgpuManager *manager = client->manager;

    (void)options;
    (void)args;
    return vgpu_manager_call_reload_sync(manager, NULL, error);
}
