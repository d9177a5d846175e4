/* SPDX-License-Identifier: MIT */
/* vgpuctl tenant: who may have how much. */
#include "host-agent/vgpuctl/call_dict.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/each.h"
#include "host-agent/vgpuctl/filter.h"
#include "host-agent/vgpuctl/objects.h"

static char *vram;
static int compute = -1;
static int vgpus = -1;
static char **models;
static char **users;
static gboolean dry_run;

const GOptionEntry tenant_set_options[] = {
    {"vram", 0, 0, G_OPTION_ARG_STRING, &vram, "GPU memory in total; 0: no limit", "SIZE"},
    {"compute", 0, 0, G_OPTION_ARG_INT, &compute,
     "Compute in total, in per cent of one GPU; 0: no limit", "N"},
    {"vgpus", 0, 0, G_OPTION_ARG_INT, &vgpus, "How many vGPUs and slices; 0: no limit", "N"},
    {"model", 0, 0, G_OPTION_ARG_STRING_ARRAY, &models,
     "GPUs that it may use, by id (10de:*) or name; once for each", "PATTERN"},
    {"user", 0, 0, G_OPTION_ARG_STRING_ARRAY, &users, "Who may use it; once for each", "USER"},
    {"dry-run", 0, 0, G_OPTION_ARG_NONE, &dry_run, "Only check whether it is possible", NULL},
    G_OPTION_ENTRY_NULL,
};

/* "4.0 GiB of 8.0 GiB". Takes both. */
static char *part(char *used, char *most)
{
    char *text = g_strdup_printf("%s of %s", used ? used : "0", most ? most : "any");

    g_free(used);
    g_free(most);
    return text;
}

/* @key: of the quota; with Used before it, of what is used. */
static char *bytes_part(GVariant *tenant, const char *key)
{
    g_autofree char *used = g_strconcat("Used", key, NULL);

    return part(dict_bytes(tenant, used), dict_bytes(tenant, key));
}

static char *number_part(GVariant *tenant, const char *key)
{
    g_autofree char *used = g_strconcat("Used", key, NULL);

    return part(dict_limit(tenant, used), dict_limit(tenant, key));
}

static char *words_text(GVariant *tenant, const char *key)
{
    return dict_list(tenant, key, " ");
}

static const Column columns[] = {
    {"TENANT", "Name", dict_text, 0},
    {"VRAM", "Vram", bytes_part, 0},
    {"COMPUTE %", "Compute", number_part, 0},
    {"VGPUS", "Vgpus", number_part, 0},
    {"MODELS", "Models", words_text, 0},
    {"USERS", "Users", words_text, COLUMN_LONG},
    {"SET BY", "Source", dict_text, COLUMN_STATE},
};

static const Column lines[] = {
    {"Tenant", "Name", dict_text, 0},         {"VRAM", "Vram", bytes_part, 0},
    {"Compute %", "Compute", number_part, 0}, {"vGPUs and slices", "Vgpus", number_part, 0},
    {"GPU models", "Models", words_text, 0},  {"Users", "Users", words_text, 0},
    {"Set by", "Source", dict_text, 0},
};

static const Listing listing = {
    .columns = columns,
    .columns_count = G_N_ELEMENTS(columns),
    .lines = lines,
    .lines_count = G_N_ELEMENTS(lines),
    .name = "Name",
    .none = "There is no tenant; \"vgpuctl tenant set NAME\" creates one.",
};

gboolean tenant_list_command(Client *client, const Options *options, char **args, GError **error)
{
    static const Filter filter = {.tenant = "Name"};
    g_autoptr(GVariant) tenants = client_get(client, "ListTenants", NULL, NULL, error);

    (void)args;
    if (tenants)
        tenants = filter_apply(g_steal_pointer(&tenants), &filter, error);
    if (!tenants)
        return FALSE;
    listing_print(options, &listing, tenants);
    return TRUE;
}

gboolean tenant_show_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) tenants = client_get(client, "ListTenants", NULL, NULL, error);

    return tenants && objects_show(options, &listing, tenants, args, object_is_named, "tenant",
                                   "tenant list", error);
}

gboolean tenant_set_command(Client *client, const Options *options, char **args, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);
    g_autoptr(GVariant) answer = NULL;

    (void)options;
    call_dict_add_number(&dict, "Compute", compute);
    call_dict_add_number(&dict, "Vgpus", vgpus);
    call_dict_add_list(&dict, "Models", models);
    call_dict_add_list(&dict, "Users", users);
    call_dict_add_flag(&dict, "DryRun", dry_run);
    if (!call_dict_add_size(&dict, "Vram", "--vram", vram, TRUE, error))
        return FALSE;
    answer =
        client_call(client, "SetTenant",
                    g_variant_new("(s@a{sv})", args[0], g_variant_dict_end(&dict)), NULL, error);
    return answer != NULL;
}

static gboolean remove_tenant(Client *client, const char *name, void *data, GError **error)
{
    g_autoptr(GVariant) answer =
        client_call(client, "RemoveTenant", g_variant_new("(s)", name), NULL, error);

    (void)data;
    return answer != NULL;
}

gboolean tenant_remove_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)options;
    return each_name(client, args, "removing tenants", remove_tenant, NULL, error);
}
