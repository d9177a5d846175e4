/* SPDX-License-Identifier: MIT */
/*
 * vgpuctl vgpu: the commands by the noun that they had before a vGPU was a slice with a door. They
 * go with the release after the next one, and so do this file and their rows in command.c.
 */
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/slice.h"

gboolean vgpu_list_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)args;
    return slices_list(client, options, vgpu_doors, &vgpu_listing, error);
}

gboolean vgpu_show_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) vgpus = slices_get(client, vgpu_doors, NULL, error);

    if (vgpus)
        warn_of_meter(options, vgpus);
    return vgpus && objects_show(options, &vgpu_listing, vgpus, args, object_is_slice, "vGPU",
                                 "slice list", error);
}

gboolean vgpu_create_command(Client *client, const Options *options, char **args, GError **error)
{
    return slices_make(client, options, args, "vm", &vgpu_listing, error);
}
