/* SPDX-License-Identifier: MIT */
/* vgpuctl tenant: who may have how much. */
#include <stdio.h>

#include "host-agent/vgpuctl/call_dict.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/json.h"
#include "host-agent/vgpuctl/table.h"
#include "host-agent/vgpuctl/text.h"

static char *vram;
static int compute = -1;
static int vgpus = -1;
static char **models;
static char **users;
static gboolean dry_run;

const GOptionEntry tenant_set_options[] = {
    {"vram", 0, 0, G_OPTION_ARG_STRING, &vram, "GPU memory, all together; 0: no limit", "SIZE"},
    {"compute", 0, 0, G_OPTION_ARG_INT, &compute, "Per cent of a GPU, all together; 0: no limit",
     "N"},
    {"vgpus", 0, 0, G_OPTION_ARG_INT, &vgpus, "How many; 0: no limit", "N"},
    {"model", 0, 0, G_OPTION_ARG_STRING_ARRAY, &models,
     "GPUs that it may use, by id (10de:*) or name; once for each", "PATTERN"},
    {"user", 0, 0, G_OPTION_ARG_STRING_ARRAY, &users, "Who may use it; once for each", "USER"},
    {"dry-run", 0, 0, G_OPTION_ARG_NONE, &dry_run, "Only say whether it could be", NULL},
    G_OPTION_ENTRY_NULL,
};

/* "4.0 GiB of 8.0 GiB" */
static char *part(char *used, char *most)
{
    char *text = g_strdup_printf("%s of %s", used ? used : "0", most ? most : "any");

    g_free(used);
    g_free(most);
    return text;
}

static char *number_or_null(GVariant *tenant, const char *key)
{
    guint number = 0;

    g_variant_lookup(tenant, key, "u", &number);
    return number ? g_strdup_printf("%u", number) : NULL;
}

static char *list_text(GVariant *tenant, const char *key)
{
    g_autofree const char **list = NULL;

    return g_variant_lookup(tenant, key, "^a&s", &list) ? g_strjoinv(" ", (char **)list) : NULL;
}

static void print_table(GVariant *tenants)
{
    static const char *const heads[] = {"TENANT", "VRAM", "COMPUTE %", "VGPUS", "MODELS", "USERS"};
    g_autoptr(Table) table = table_new_with_heads(heads, G_N_ELEMENTS(heads));

    for (gsize i = 0; i < g_variant_n_children(tenants); i++) {
        g_autoptr(GVariant) tenant = g_variant_get_child_value(tenants, i);

        table_add(table, dict_text(tenant, "Name"));
        table_add(table, part(dict_bytes(tenant, "UsedVram"), dict_bytes(tenant, "Vram")));
        table_add(table,
                  part(number_or_null(tenant, "UsedCompute"), number_or_null(tenant, "Compute")));
        table_add(table,
                  part(number_or_null(tenant, "UsedVgpus"), number_or_null(tenant, "Vgpus")));
        table_add(table, list_text(tenant, "Models"));
        table_add(table, list_text(tenant, "Users"));
    }
    table_print(table);
}

gboolean tenant_list_command(Client *client, const Options *options, char **args,
                             GError **error)
{
    VgpuManager *manager = client->manager;
    g_autoptr(GVariant) tenants = NULL;

    (void)args;
    if (!vgpu_manager_call_list_tenants_sync(manager, &tenants, NULL, error))
        return FALSE;
    if (options->json)
        json_print(json_gvariant_serialize(tenants));
    else if (g_variant_n_children(tenants))
        print_table(tenants);
    else
        puts("There is no tenant; \"vgpuctl tenant set NAME\" makes one.");
    return TRUE;
}

gboolean tenant_set_command(Client *client, const Options *options, char **args,
                            GError **error)
{
    VgpuManager *manager = client->manager;
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    (void)options;
    call_dict_add_number(&dict, "Compute", compute);
    call_dict_add_number(&dict, "Vgpus", vgpus);
    call_dict_add_list(&dict, "Models", models);
    call_dict_add_list(&dict, "Users", users);
    call_dict_add_flag(&dict, "DryRun", dry_run);
    return call_dict_add_size(&dict, "Vram", "--vram", vram, TRUE, error) &&
           vgpu_manager_call_set_tenant_sync(manager, args[0], g_variant_dict_end(&dict), NULL,
                                             error);
}

gboolean tenant_remove_command(Client *client, const Options *options, char **args,
                               GError **error)
{
    VgpuManager *manager = client->manager;

    (void)options;
    return vgpu_manager_call_remove_tenant_sync(manager, args[0], NULL, error);
}
