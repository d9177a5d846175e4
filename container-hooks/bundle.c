/* SPDX-License-Identifier: MIT */
#include "container-hooks/bundle.h"

#include <gio/gio.h>
#include <string.h>

#include "lib/json.h"

static void mount_free(void *data)
{
    BundleMount *mount = data;

    g_free(mount->source);
    g_free(mount->destination);
    g_free(mount);
}

void bundle_free(Bundle *bundle)
{
    g_free(bundle->image);
    g_strfreev(bundle->environment);
    g_ptr_array_unref(bundle->mounts);
    g_free(bundle);
}

static const char *text_or_empty(JsonObject *object, const char *name)
{
    const char *text = json_text_in(object, name);

    return text ? text : "";
}

static GStrv environment_of(JsonObject *config)
{
    JsonArray *list = json_array_in(json_object_in(config, "process"), "env");
    g_autoptr(GStrvBuilder) environment = g_strv_builder_new();

    for (guint i = 0; i < json_length(list); i++) {
        JsonNode *node = json_array_get_element(list, i);

        if (json_node_get_value_type(node) == G_TYPE_STRING)
            g_strv_builder_add(environment, json_node_get_string(node));
    }
    return g_strv_builder_end(environment);
}

/* If it is there twice, the program has the last one. */
const char *bundle_variable(const Bundle *bundle, const char *name)
{
    gsize length = strlen(name);
    const char *value = "";

    for (guint i = 0; bundle->environment[i]; i++) {
        const char *text = bundle->environment[i];

        if (g_str_has_prefix(text, name) && text[length] == '=')
            value = text + length + 1;
    }
    return value;
}

static GPtrArray *mounts_of(JsonObject *config)
{
    JsonArray *list = json_array_in(config, "mounts");
    GPtrArray *mounts = g_ptr_array_new_with_free_func(mount_free);

    for (guint i = 0; i < json_length(list); i++) {
        JsonNode *node = json_array_get_element(list, i);
        JsonObject *object = JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
        BundleMount *mount = g_new0(BundleMount, 1);

        mount->source = g_strdup(text_or_empty(object, "source"));
        mount->destination = g_strdup(text_or_empty(object, "destination"));
        g_ptr_array_add(mounts, mount);
    }
    return mounts;
}

/* A relative one is below the bundle's folder. */
static char *image_of(JsonObject *config, const char *folder)
{
    const char *path = text_or_empty(json_object_in(config, "root"), "path");

    if (!*path)
        return NULL;
    return g_path_is_absolute(path) ? g_strdup(path) : g_build_filename(folder, path, NULL);
}

Bundle *bundle_read(const char *folder, GError **error)
{
    g_autofree char *path = folder ? g_build_filename(folder, "config.json", NULL) : NULL;
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autofree char *image = NULL;
    JsonNode *node;
    JsonObject *config;
    Bundle *bundle;

    if (path && !json_parser_load_from_file(parser, path, error))
        return NULL;
    node = json_parser_get_root(parser);
    config = node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
    image = config ? image_of(config, folder) : NULL;
    if (!image) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                    "the runtime does not say where the container's root is (%s)",
                    path ? path : "no bundle in its state");
        return NULL;
    }
    bundle = g_new0(Bundle, 1);
    bundle->image = g_steal_pointer(&image);
    bundle->environment = environment_of(config);
    bundle->mounts = mounts_of(config);
    return bundle;
}
