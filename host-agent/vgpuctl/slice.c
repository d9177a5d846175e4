/* SPDX-License-Identifier: MIT */
/* vgpuctl slice: parts of GPUs for containers. */
#include <stdio.h>

#include "host-agent/vgpuctl/call_dict.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/json.h"
#include "host-agent/vgpuctl/table.h"
#include "host-agent/vgpuctl/vgpu_options.h"

static gboolean force;
static gboolean only_say;

const GOptionEntry slice_remove_options[] = {
    {"force", 0, 0, G_OPTION_ARG_NONE, &force, "Also where a container has it", NULL},
    {"dry-run", 0, 0, G_OPTION_ARG_NONE, &only_say, "Only say whether it could be", NULL},
    G_OPTION_ENTRY_NULL,
};

static const char *const heads[] = {"SLICE", "NAME",  "DOOR",   "GPU",      "VRAM",
                                    "USED",  "CLASS", "TENANT", "CONTAINER"};

static void print_list(GVariant *slices)
{
    g_autoptr(Table) table = table_new_with_heads(heads, G_N_ELEMENTS(heads));

    for (gsize i = 0; i < g_variant_n_children(slices); i++) {
        g_autoptr(GVariant) slice = g_variant_get_child_value(slices, i);

        table_add(table, dict_text(slice, "Uuid"));
        table_add(table, dict_text(slice, "Name"));
        table_add(table, dict_text(slice, "Door"));
        table_add(table, dict_text(slice, "Gpu"));
        table_add(table, dict_bytes(slice, "Vram"));
        table_add(table, dict_bytes(slice, "VramUsed"));
        table_add(table, dict_text(slice, "Class"));
        table_add(table, dict_text(slice, "Tenant"));
        table_add(table, dict_text(slice, "Container"));
    }
    table_print(table);
}

gboolean slice_list_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) slices = NULL;

    (void)args;
    if (!vgpu_manager_call_list_slices_sync(client->manager, &slices, NULL, error))
        return FALSE;
    if (options->json)
        json_print(json_gvariant_serialize(slices));
    else if (g_variant_n_children(slices))
        print_list(slices);
    else
        puts("This host has no slice for containers.");
    return TRUE;
}

static gboolean is_called(GVariant *slice, const char *asked)
{
    g_autofree char *uuid = dict_text(slice, "Uuid");
    g_autofree char *its_name = dict_text(slice, "Name");

    return !g_ascii_strcasecmp(uuid, asked) || g_str_equal(its_name, asked);
}

static GVariant *find(GVariant *slices, const char *asked, GError **error)
{
    for (gsize i = 0; i < g_variant_n_children(slices); i++) {
        g_autoptr(GVariant) slice = g_variant_get_child_value(slices, i);

        if (is_called(slice, asked))
            return g_steal_pointer(&slice);
    }
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_NOT_FOUND,
                "there is no slice %s; \"vgpuctl slice list\" shows those that there are", asked);
    return NULL;
}

static void print_slice(GVariant *slice)
{
    g_autoptr(Table) table = table_new(2);

    table_add_pair(table, "Slice", dict_text(slice, "Uuid"));
    table_add_pair(table, "Name", dict_text(slice, "Name"));
    table_add_pair(table, "Door", dict_text(slice, "Door"));
    table_add_pair(table, "GPU", dict_text(slice, "Gpu"));
    table_add_pair(table, "Type", dict_text(slice, "Type"));
    table_add_pair(table, "Class", dict_text(slice, "Class"));
    table_add_pair(table, "Tenant", dict_text(slice, "Tenant"));
    table_add_pair(table, "Container", dict_text(slice, "Container"));
    table_add_pair(table, "Counted with", dict_text(slice, "CountedWith"));
    table_add_pair(table, "Ends with it", dict_flag(slice, "Ephemeral"));
    table_add_pair(table, "VRAM", dict_bytes(slice, "Vram"));
    table_add_pair(table, "Of it in use", dict_bytes(slice, "VramUsed"));
    table_add_pair(table, "Oversubscription", dict_bytes(slice, "Oversubscribe"));
    table_add_pair(table, "Processes", dict_number(slice, "Members"));
    table_add_pair(table, "Compute", dict_number(slice, "Compute"));
    table_add_pair(table, "Weight", dict_number(slice, "Weight"));
    table_add_pair(table, "Cap", dict_number(slice, "Cap"));
    table_add_pair(table, "Priority", dict_number(slice, "Priority"));
    table_add_pair(table, "Engines", dict_text(slice, "Engines"));
    table_print(table);
}

gboolean slice_show_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) slices = NULL;
    g_autoptr(GVariant) slice = NULL;

    if (!vgpu_manager_call_list_slices_sync(client->manager, &slices, NULL, error) ||
        !(slice = find(slices, args[0], error)))
        return FALSE;
    if (options->json)
        json_print(json_gvariant_serialize(slice));
    else
        print_slice(slice);
    return TRUE;
}

gboolean slice_create_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) slice = NULL;
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    client_be_patient(client);
    call_dict_add_text(&dict, "Type", args[0]);
    if (!vgpu_options_for_slice(&dict, error) ||
        !vgpu_manager_call_create_slice_sync(client->manager, g_variant_dict_end(&dict), &slice,
                                             NULL, error))
        return FALSE;
    if (options->json) {
        json_print(json_gvariant_serialize(slice));
    } else {
        GVariant *list = g_variant_ref_sink(g_variant_new_array(NULL, &slice, 1));

        print_list(list);
        g_variant_unref(list);
    }
    return TRUE;
}

gboolean slice_set_command(Client *client, const Options *options, char **args, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    (void)options;
    client_be_patient(client);
    return vgpu_options_parameters(&dict, error) &&
           vgpu_manager_call_set_slice_sync(client->manager, args[0], g_variant_dict_end(&dict),
                                            NULL, error);
}

gboolean slice_remove_command(Client *client, const Options *options, char **args, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    (void)options;
    client_be_patient(client);
    call_dict_add_flag(&dict, "DryRun", only_say);
    call_dict_add_flag(&dict, "Force", force);
    return vgpu_manager_call_remove_slice_sync(client->manager, args[0], g_variant_dict_end(&dict),
                                               NULL, error);
}
