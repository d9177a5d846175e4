/* SPDX-License-Identifier: MIT */
/* vgpuctl type: what vGPUs come in. */
#include <stdio.h>

#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/json.h"
#include "host-agent/vgpuctl/table.h"

static void print_table(GVariant *types)
{
    static const char *const heads[] = {"GPU", "TYPE", "THERE", "MORE", "DESCRIPTION"};
    g_autoptr(Table) table = table_new_with_heads(heads, G_N_ELEMENTS(heads));

    for (gsize i = 0; i < g_variant_n_children(types); i++) {
        g_autoptr(GVariant) type = g_variant_get_child_value(types, i);

        table_add(table, dict_text(type, "Gpu"));
        table_add(table, dict_text(type, "Id"));
        table_add(table, dict_number(type, "Instances"));
        table_add(table, dict_number(type, "Available"));
        table_add(table, dict_text(type, "Description"));
    }
    table_print(table);
}

gboolean type_list_command(Client *client, const Options *options, char **args,
                           GError **error)
{
    VgpuManager *manager = client->manager;
    g_autoptr(GVariant) types = NULL;

    (void)args;
    if (!vgpu_manager_call_list_types_sync(manager, &types, NULL, error))
        return FALSE;
    if (options->json)
        json_print(json_gvariant_serialize(types));
    else if (g_variant_n_children(types))
        print_table(types);
    else
        puts("No GPU of this host is shared; /etc/vgpu/gpus.conf says which are to be.");
    return TRUE;
}
