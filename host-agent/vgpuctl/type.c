/* SPDX-License-Identifier: MIT */
/* vgpuctl type: what vGPUs come in. */
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/filter.h"
#include "host-agent/vgpuctl/objects.h"

static const Column columns[] = {
    {"GPU", "Gpu", dict_text, 0},
    {"TYPE", "Id", dict_text, 0},
    {"COUNT", "Instances", dict_number, 0},
    {"MORE", "Available", dict_number, 0},
    {"VRAM", "Vram", dict_bytes, COLUMN_WIDE},
    {"CLASS", "Class", dict_text, COLUMN_WIDE},
    {"COMPUTE", "Compute", dict_limit, COLUMN_WIDE},
    {"DESCRIPTION", "Description", dict_text, COLUMN_LONG},
};

static const Column lines[] = {
    {"Type", "Id", dict_text, 0},
    {"GPU", "Gpu", dict_text, 0},
    {"Description", "Description", dict_text, 0},
    {"vGPUs of it", "Instances", dict_number, 0},
    {"Room for more", "Available", dict_number, 0},
    {"VRAM", "Vram", dict_bytes, 0},
    {"Oversubscription", "Oversubscribe", dict_bytes, 0},
    {"Window", "Window", dict_bytes, 0},
    {"Class", "Class", dict_text, 0},
    {"Compute", "Compute", dict_limit, 0},
    {"Weight", "Weight", dict_number, 0},
    {"Cap", "Cap", dict_number, 0},
    {"Priority", "Priority", dict_number, 0},
    {"Display", "Display", dict_number, 0},
};

static const Listing listing = {
    .columns = columns,
    .columns_count = G_N_ELEMENTS(columns),
    .lines = lines,
    .lines_count = G_N_ELEMENTS(lines),
    .name = "Id",
    .none = "No GPU of this host is shared with VMs. /etc/vgpu/gpus.conf lists the GPUs to share, and the "
            "kernel module mdev_vgpu must be loaded.",
};

gboolean type_list_command(Client *client, const Options *options, char **args, GError **error)
{
    static const Filter filter = {.gpu = "Gpu", .type = "Id"};
    g_autoptr(GVariant) types = client_get(client, "ListTypes", NULL, "listing types", error);

    (void)args;
    if (types)
        types = filter_apply(g_steal_pointer(&types), &filter, error);
    if (!types)
        return FALSE;
    listing_print(options, &listing, types);
    return TRUE;
}

gboolean type_show_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) types = client_get(client, "ListTypes", NULL, "listing types", error);

    return types &&
           objects_show(options, &listing, types, args, object_is_type, "type", "type list", error);
}
