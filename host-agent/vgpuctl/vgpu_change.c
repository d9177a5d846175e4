/* SPDX-License-Identifier: MIT */
/* vgpuctl vgpu create, set, remove. */
#include <stdio.h>

#include "host-agent/vgpuctl/call_dict.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/vgpu_list.h"
#include "host-agent/vgpuctl/vgpu_options.h"

static gboolean only_say;

const GOptionEntry vgpu_remove_options[] = {
    {"dry-run", 0, 0, G_OPTION_ARG_NONE, &only_say, "Only say whether it could be", NULL},
    G_OPTION_ENTRY_NULL,
};

gboolean vgpu_create_command(Client *client, const Options *options, char **args,
                             GError **error)
{
    g_autoptr(GVariant) vgpus = NULL;
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    client_be_patient(client);
    g_variant_dict_insert(&dict, "Type", "s", args[0]);
    if (!vgpu_options_parameters(&dict, error) || !vgpu_options_placement(&dict, error) ||
        !vgpu_manager_call_create_vgpus_sync(client->manager, g_variant_dict_end(&dict), &vgpus, NULL,
                                             error))
        return FALSE;
    vgpu_print_list(vgpus, options->json, "Nothing was made.");
    return TRUE;
}

gboolean vgpu_set_command(Client *client, const Options *options, char **args, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    (void)options;
    client_be_patient(client);
    return vgpu_options_parameters(&dict, error) &&
           vgpu_manager_call_set_vgpu_sync(client->manager, args[0], g_variant_dict_end(&dict), NULL,
                                           error);
}

gboolean vgpu_remove_command(Client *client, const Options *options, char **args,
                             GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    (void)options;
    client_be_patient(client);
    call_dict_add_flag(&dict, "DryRun", only_say);
    return vgpu_manager_call_remove_vgpu_sync(client->manager, args[0],
                                                         g_variant_dict_end(&dict), NULL, error);
}
