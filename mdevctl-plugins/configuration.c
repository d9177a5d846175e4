/* SPDX-License-Identifier: MIT */
#include "mdevctl-plugins/configuration.h"

#include <json-glib/json-glib.h>

static gboolean is_text(JsonNode *node)
{
    return JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING;
}

/* mdevctl uses a list of objects of one member each, and accepts nothing else. */
static gboolean read_entry(Wanted *wanted, JsonNode *entry, GError **error)
{
    JsonObject *object = JSON_NODE_HOLDS_OBJECT(entry) ? json_node_get_object(entry) : NULL;
    JsonObjectIter iter;
    const char *name;
    JsonNode *value;

    if (!object || json_object_get_size(object) != 1) {
        g_set_error_literal(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                            "an entry of \"attrs\" is not an object of one member");
        return FALSE;
    }
    json_object_iter_init(&iter, object);
    json_object_iter_next(&iter, &name, &value);
    if (is_text(value))
        return attribute_read(wanted, name, json_node_get_string(value), error);
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "the value of the attribute %s is not a text", name);
    return FALSE;
}

static gboolean read_attributes(Wanted *wanted, JsonObject *object, GError **error)
{
    JsonNode *node = json_object_get_member(object, "attrs");
    JsonArray *list = node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;

    for (guint i = 0; list && i < json_array_get_length(list); i++)
        if (!read_entry(wanted, json_array_get_element(list, i), error))
            return FALSE;
    return TRUE;
}

gboolean configuration_parse(const char *text, Wanted *wanted, GError **error)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonNode *root;
    JsonNode *start;

    *wanted = (Wanted){0};
    if (!text || !json_parser_load_from_data(parser, text, -1, NULL) ||
        !(root = json_parser_get_root(parser)) || !JSON_NODE_HOLDS_OBJECT(root)) {
        g_set_error_literal(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                            "mdevctl's description of the vGPU is not a JSON object");
        return FALSE;
    }
    start = json_object_get_member(json_node_get_object(root), "start");
    wanted->autostart = start && is_text(start) && g_str_equal(json_node_get_string(start), "auto");
    return read_attributes(wanted, json_node_get_object(root), error);
}

char *configuration_value(const Vgpu *vgpu, guint attribute)
{
    const guint64 numbers[ATTRIBUTES] = {
        [ATTRIBUTE_VRAM] = vgpu->vram,
        [ATTRIBUTE_WINDOW] = vgpu->window,
        [ATTRIBUTE_WEIGHT] = vgpu->weight,
        [ATTRIBUTE_CAP] = vgpu->cap,
        [ATTRIBUTE_PRIORITY] = (guint64)MAX(vgpu->priority, 0),
        [ATTRIBUTE_DISPLAY] = vgpu->display,
        [ATTRIBUTE_OVERSUBSCRIBE] = (guint64)MAX(vgpu->oversubscribe, 0),
    };

    if (attribute == ATTRIBUTE_TENANT)
        return g_strdup(vgpu->tenant);
    if (attribute == ATTRIBUTE_CLASS)
        return g_strdup(vgpu->class);
    if (attribute == ATTRIBUTE_OVERSUBSCRIBE && vgpu->oversubscribe < 0)
        return g_strdup("");
    return g_strdup_printf("%" G_GUINT64_FORMAT, numbers[attribute]);
}

char *configuration_list(const Vgpu *vgpu)
{
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_ARRAY);
    JsonArray *list = json_array_new();

    for (guint i = 0; i < ATTRIBUTES; i++) {
        g_autofree char *text = configuration_value(vgpu, i);
        JsonObject *object;

        if (!*text)
            continue;
        object = json_object_new();
        json_object_set_string_member(object, attributes[i].name, text);
        json_array_add_object_element(list, object);
    }
    json_node_take_array(node, list);
    return json_to_string(node, FALSE);
}
