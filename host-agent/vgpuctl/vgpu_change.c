/* SPDX-License-Identifier: MIT */
/* vgpuctl vgpu create, set, start, stop, remove. */
#include "host-agent/vgpuctl/call_dict.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/each.h"
#include "host-agent/vgpuctl/vgpu.h"
#include "host-agent/vgpuctl/vgpu_options.h"

static gboolean dry_run;

const GOptionEntry vgpu_remove_options[] = {
    {"dry-run", 0, 0, G_OPTION_ARG_NONE, &dry_run, "Only check whether it is possible", NULL},
    G_OPTION_ENTRY_NULL,
};

gboolean vgpu_create_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) vgpus = NULL;
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    g_variant_dict_insert(&dict, "Type", "s", args[0]);
    if (!vgpu_options_parameters(&dict, error) || !vgpu_options_placement(&dict, error))
        return FALSE;
    vgpus = client_get(client, "CreateVgpus", g_variant_new("(@a{sv})", g_variant_dict_end(&dict)),
                       "creating vGPUs", error);
    if (!vgpus)
        return FALSE;
    listing_print(options, &vgpu_listing, vgpus);
    return TRUE;
}

/**
 * Change - what is done to each vGPU
 * @doing: as "removing vGPU", for the progress line
 */
typedef struct {
    const char *method;
    const char *doing;
    GVariant *options;
} Change;

static gboolean change(Client *client, const char *name, void *data, GError **error)
{
    const Change *change = data;
    g_autofree char *what = g_strdup_printf("%s %s", change->doing, name);
    g_autoptr(GVariant) answer = client_call(
        client, change->method, g_variant_new("(s@a{sv})", name, change->options), what, error);

    return answer != NULL;
}

/* @dict: consumed. */
static gboolean change_each(Client *client, char **names, const char *method, const char *doing,
                            GVariant *dict, GError **error)
{
    g_autoptr(GVariant) options = g_variant_ref_sink(dict);
    Change all = {method, doing, options};

    return each_name(client, names, doing, change, &all, error);
}

gboolean vgpu_set_command(Client *client, const Options *options, char **args, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    (void)options;
    return vgpu_options_parameters(&dict, error) &&
           change_each(client, args, "SetVgpu", "changing vGPU", g_variant_dict_end(&dict), error);
}

gboolean slice_set_command(Client *client, const Options *options, char **args, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    (void)options;
    return vgpu_options_parameters(&dict, error) &&
           change_each(client, args, "SetSlice", "changing slice", g_variant_dict_end(&dict),
                       error);
}

gboolean vgpu_start_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)options;
    return change_each(client, args, "StartVgpu", "starting vGPU", g_variant_new("a{sv}", NULL),
                       error);
}

gboolean vgpu_stop_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)options;
    return change_each(client, args, "StopVgpu", "stopping vGPU", g_variant_new("a{sv}", NULL),
                       error);
}

gboolean vgpu_remove_command(Client *client, const Options *options, char **args, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    (void)options;
    call_dict_add_flag(&dict, "DryRun", dry_run);
    return change_each(client, args, "RemoveVgpu", "removing vGPU", g_variant_dict_end(&dict),
                       error);
}
