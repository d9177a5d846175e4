/* SPDX-License-Identifier: MIT */
/* vgpuctl cdi: what containers can ask for by --device. */
#include <gio/gio.h>
#include <json-glib/json-glib.h>

#include "host-agent/vgpuctl/client.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/output.h"

static char *output_file;

const GOptionEntry cdi_generate_options[] = {
    {"file", 'f', 0, G_OPTION_ARG_FILENAME, &output_file, "Write it to FILE", "FILE"},
    G_OPTION_ENTRY_NULL,
};

static char *get_spec(const Client *client, GError **error)
{
    g_autoptr(GVariant) spec = client_get(client, "GetCdi", NULL, NULL, error);

    return spec ? g_variant_dup_string(spec, NULL) : NULL;
}

/* "mdev-vgpu.org/slice=web" of each device. */
static GStrv names_of(const char *spec, GError **error)
{
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonObject *root;
    JsonArray *devices;

    if (!*spec)
        return g_strv_builder_end(names);
    if (!json_parser_load_from_data(parser, spec, -1, error))
        return NULL;
    root = json_node_get_object(json_parser_get_root(parser));
    devices = json_object_get_array_member(root, "devices");
    for (guint i = 0; i < json_array_get_length(devices); i++)
        g_strv_builder_take(
            names, g_strdup_printf("%s=%s", json_object_get_string_member(root, "kind"),
                                   json_object_get_string_member(
                                       json_array_get_object_element(devices, i), "name")));
    return g_strv_builder_end(names);
}

gboolean cdi_list_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autofree char *spec = get_spec(client, error);
    g_auto(GStrv) names = spec ? names_of(spec, error) : NULL;

    (void)args;
    if (!names)
        return FALSE;
    if (output_is_document(options)) {
        output_variant(options, g_variant_new_strv((const char *const *)names, -1));
        return TRUE;
    }
    if (!names[0])
        output_line(
            options,
            "This host has no device for containers; \"vgpuctl slice create\" creates one.");
    for (guint i = 0; names[i]; i++)
        output_line(options, "%s", names[i]);
    return TRUE;
}

gboolean cdi_generate_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autofree char *spec = get_spec(client, error);

    (void)args;
    if (!spec)
        return FALSE;
    if (!*spec) {
        g_set_error(
            error, VGPUCTL_ERROR, VGPUCTL_NOT_FOUND,
            "cannot print a CDI specification: this host has no device for containers; \"vgpuctl "
            "slice create\" creates one");
        return FALSE;
    }
    if (output_file)
        return g_file_set_contents_full(output_file, spec, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0644,
                                        error);
    fputs(spec, options->out);
    return TRUE;
}
