/* SPDX-License-Identifier: MIT */
#include "lib/definition.h"

#include "lib/host_root.h"
#include "lib/sysfs.h"

void definition_free(Definition *definition)
{
    g_free(definition->uuid);
    g_free(definition->parent);
    g_free(definition->type);
    g_free(definition->tenant);
    g_free(definition->class);
    g_free(definition);
}

static void free_definition(void *definition)
{
    definition_free(definition);
}

/* mdevctl has a list of objects with one member each, and writes them in order. NULL: none. */
static const char *attribute_text(JsonObject *object, const char *name)
{
    JsonNode *node = json_object_get_member(object, "attrs");
    JsonArray *list = node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
    const char *found = NULL;

    for (guint i = 0; list && i < json_array_get_length(list); i++) {
        JsonNode *entry = json_array_get_element(list, i);
        const char *text = NULL;

        if (JSON_NODE_HOLDS_OBJECT(entry))
            text =
                json_object_get_string_member_with_default(json_node_get_object(entry), name, NULL);
        if (text)
            found = text;
    }
    return found;
}

static gint64 attribute(JsonObject *object, const char *name)
{
    const char *text = attribute_text(object, name);

    return text ? g_ascii_strtoll(text, NULL, 0) : -1;
}

static void read_attributes(Definition *definition, JsonObject *object)
{
    definition->vram = attribute(object, "vgpu/vram_bytes");
    definition->weight = attribute(object, "vgpu/weight");
    definition->cap = attribute(object, "vgpu/cap");
    definition->priority = attribute(object, "vgpu/priority");
    definition->display = attribute(object, "vgpu/display");
    definition->tenant = g_strdup(attribute_text(object, "vgpu/tenant"));
    definition->class = g_strdup(attribute_text(object, "vgpu/class"));
    definition->oversubscribe = attribute(object, "vgpu/oversubscribe_bytes");
}

/* NULL: no file, or no JSON object. */
static JsonObject *load(HostRoot *root, const char *parent, const char *uuid)
{
    g_autofree char *path = g_build_filename(DEFINITIONS_DIR, parent, uuid, NULL);
    g_autofree char *text = root_read(root, path, NULL);
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonNode *root_node;

    /* No root: mdevctl has created the file but not yet written it. */
    if (!text || !json_parser_load_from_data(parser, text, -1, NULL) ||
        !(root_node = json_parser_get_root(parser)) || !JSON_NODE_HOLDS_OBJECT(root_node))
        return NULL;
    return json_node_dup_object(root_node);
}

Definition *definition_read(HostRoot *root, const char *parent, const char *uuid)
{
    g_autoptr(JsonObject) object = load(root, parent, uuid);
    const char *type =
        object ? json_object_get_string_member_with_default(object, "mdev_type", NULL) : NULL;
    Definition *definition;

    if (!type)
        return NULL;
    definition = g_new0(Definition, 1);
    definition->uuid = g_strdup(uuid);
    definition->parent = g_strdup(parent);
    definition->type = g_strdup(type);
    definition->autostart =
        g_strcmp0(json_object_get_string_member_with_default(object, "start", NULL), "auto") == 0;
    read_attributes(definition, object);
    return definition;
}

JsonObject *definition_json(HostRoot *root, const Definition *definition)
{
    JsonObject *object = load(root, definition->parent, definition->uuid);

    return object ? object : json_object_new();
}

GPtrArray *definitions_read(HostRoot *root)
{
    g_auto(GStrv) parents = sysfs_list(root, DEFINITIONS_DIR);
    GPtrArray *definitions = g_ptr_array_new_with_free_func(free_definition);

    for (guint i = 0; parents[i]; i++) {
        g_autofree char *parent_dir = g_build_filename(DEFINITIONS_DIR, parents[i], NULL);
        g_auto(GStrv) uuids = sysfs_list(root, parent_dir);

        for (guint k = 0; uuids[k]; k++) {
            /* Editors and packages leave copies in the same folder, such as UUID.orig. */
            Definition *definition = g_uuid_string_is_valid(uuids[k])
                                         ? definition_read(root, parents[i], uuids[k])
                                         : NULL;

            if (definition)
                g_ptr_array_add(definitions, definition);
        }
    }
    return definitions;
}

gboolean definition_exists(HostRoot *root, const char *uuid)
{
    g_auto(GStrv) parents = sysfs_list(root, DEFINITIONS_DIR);
    gboolean exists = FALSE;

    for (guint i = 0; !exists && parents[i]; i++) {
        g_autofree char *path = g_build_filename(DEFINITIONS_DIR, parents[i], uuid, NULL);

        exists = root_has(root, path);
    }
    return exists;
}

Definition *definition_find(HostRoot *root, const char *uuid)
{
    g_auto(GStrv) parents = sysfs_list(root, DEFINITIONS_DIR);
    Definition *definition = NULL;

    for (guint i = 0; !definition && parents[i]; i++)
        definition = definition_read(root, parents[i], uuid);
    return definition;
}
