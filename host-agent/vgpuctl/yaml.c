/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/yaml.h"

#include <string.h>

#define INDENT 2

static void add_node(GString *text, JsonNode *node, guint depth);

static gboolean is_block(JsonNode *node)
{
    if (JSON_NODE_HOLDS_OBJECT(node))
        return json_object_get_size(json_node_get_object(node)) > 0;
    return JSON_NODE_HOLDS_ARRAY(node) && json_array_get_length(json_node_get_array(node)) > 0;
}

static void indent(GString *text, guint depth)
{
    g_string_append_printf(text, "%*s", (int)(depth * INDENT), "");
}

/* Every JSON scalar is one of YAML's, in the same words. */
static void add_scalar(GString *text, JsonNode *node)
{
    g_autofree char *scalar = json_to_string(node, FALSE);

    g_string_append(text, scalar);
}

static void add_member(GString *text, const char *name, JsonNode *node, guint depth)
{
    g_string_append_printf(text, "%s:", name);
    if (is_block(node)) {
        g_string_append_c(text, '\n');
        add_node(text, node, depth + 1);
        return;
    }
    g_string_append_c(text, ' ');
    add_scalar(text, node);
    g_string_append_c(text, '\n');
}

/* @begun: the first line's indentation is there. */
static void add_object(GString *text, JsonObject *object, guint depth, gboolean begun)
{
    g_autoptr(GList) names = g_list_sort(json_object_get_members(object), (GCompareFunc)strcmp);

    for (GList *at = names; at; at = at->next) {
        if (at != names || !begun)
            indent(text, depth);
        add_member(text, at->data, json_object_get_member(object, at->data), depth);
    }
}

static void add_entry(GString *text, JsonNode *node, guint depth)
{
    indent(text, depth);
    g_string_append_c(text, '-');
    if (JSON_NODE_HOLDS_OBJECT(node) && is_block(node)) {
        g_string_append_c(text, ' ');
        add_object(text, json_node_get_object(node), depth + 1, TRUE);
    } else if (is_block(node)) {
        g_string_append_c(text, '\n');
        add_node(text, node, depth + 1);
    } else {
        g_string_append_c(text, ' ');
        add_scalar(text, node);
        g_string_append_c(text, '\n');
    }
}

static void add_node(GString *text, JsonNode *node, guint depth)
{
    JsonArray *array;

    if (JSON_NODE_HOLDS_OBJECT(node)) {
        add_object(text, json_node_get_object(node), depth, FALSE);
        return;
    }
    array = json_node_get_array(node);
    for (guint i = 0; i < json_array_get_length(array); i++)
        add_entry(text, json_array_get_element(array, i), depth);
}

char *yaml_of_json(JsonNode *node)
{
    GString *text = g_string_new(NULL);

    if (is_block(node)) {
        add_node(text, node, 0);
    } else {
        add_scalar(text, node);
        g_string_append_c(text, '\n');
    }
    return g_string_free(text, FALSE);
}
