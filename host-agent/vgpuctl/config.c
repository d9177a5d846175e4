/* SPDX-License-Identifier: MIT */
/* vgpuctl config diff, apply: /etc/vgpu against what was set by command. */
#include "host-agent/vgpuctl/call_dict.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/config_state.h"

static gboolean dry_run;

const GOptionEntry config_apply_options[] = {
    {"dry-run", 0, 0, G_OPTION_ARG_NONE, &dry_run, "Only show what would change", NULL},
    G_OPTION_ENTRY_NULL,
};

/* NULL with @error; of sentences. */
static GVariant *call_apply(const Client *client, gboolean dry, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    call_dict_add_flag(&dict, "DryRun", dry);
    return client_get(client, "ApplyConfig", g_variant_new("(@a{sv})", g_variant_dict_end(&dict)),
                      "applying /etc/vgpu", error);
}

static void print_sentences(const Options *options, GVariant *list)
{
    g_autofree const char **sentences = g_variant_get_strv(list, NULL);

    for (guint i = 0; sentences[i]; i++)
        output_line(options, "%s", sentences[i]);
}

/* What was set by command and is declared nowhere. Of sentences. */
static GVariant *undeclared(Client *client, GError **error)
{
    g_autoptr(ConfigState) state = config_state_read(client, error);
    GVariantBuilder list;

    if (!state)
        return NULL;
    g_variant_builder_init(&list, G_VARIANT_TYPE_STRING_ARRAY);
    for (guint i = 0; i < state->gpus->len; i++) {
        const ConfigGpu *gpu = g_ptr_array_index(state->gpus, i);

        if (!gpu->declared)
            g_variant_builder_add(&list, "s", gpu->sentence);
    }
    for (guint i = 0; i < state->tenants->len; i++) {
        const ConfigTenant *tenant = g_ptr_array_index(state->tenants, i);

        if (!tenant->declared)
            g_variant_builder_add(&list, "s", tenant->sentence);
    }
    return g_variant_ref_sink(g_variant_builder_end(&list));
}

static void print_document(const Options *options, GVariant *changes, GVariant *only)
{
    JsonObject *object = json_object_new();

    json_object_set_member(object, "declared otherwise", json_gvariant_serialize(changes));
    json_object_set_member(object, "not declared", json_gvariant_serialize(only));
    output_node(options, json_node_init_object(json_node_alloc(), object));
    json_object_unref(object);
}

gboolean config_diff_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) changes = call_apply(client, TRUE, error);
    g_autoptr(GVariant) only = changes ? undeclared(client, error) : NULL;
    gsize count;

    (void)args;
    if (!only)
        return FALSE;
    count = g_variant_n_children(changes) + g_variant_n_children(only);
    if (output_is_document(options)) {
        print_document(options, changes, only);
    } else {
        print_sentences(options, changes);
        print_sentences(options, only);
    }
    if (!count)
        return TRUE;
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED,
                "%" G_GSIZE_FORMAT
                " setting%s from /etc/vgpu; \"vgpuctl config export\" writes out what was set "
                "by command, \"vgpuctl config apply\" goes back to what is declared",
                count, count == 1 ? " differs" : "s differ");
    return FALSE;
}

gboolean config_apply_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) changes = call_apply(client, dry_run, error);

    (void)args;
    if (!changes)
        return FALSE;
    if (output_is_document(options))
        output_variant(options, changes);
    else
        print_sentences(options, changes);
    return TRUE;
}
