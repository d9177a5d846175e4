/* SPDX-License-Identifier: MIT */
#include "mdevctl-plugins/configuration.h"

#include "lib/json.h"

/* mdevctl uses a list of objects of one member each, and accepts nothing else. */
static gboolean read_entry(Wanted *wanted, JsonNode *entry, GError **error)
{
    JsonObject *object = json_object_of(entry);
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
    if (json_text_of(value))
        return attribute_read(wanted, name, json_text_of(value), error);
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "the value of the attribute %s is not a text", name);
    return FALSE;
}

static gboolean read_attributes(Wanted *wanted, JsonObject *object, GError **error)
{
    JsonArray *list = json_array_in(object, "attrs");

    for (guint i = 0; i < json_length(list); i++)
        if (!read_entry(wanted, json_array_get_element(list, i), error))
            return FALSE;
    return TRUE;
}

gboolean configuration_parse(const char *text, Wanted *wanted, GError **error)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonObject *root;

    *wanted = (Wanted){0};
    if (!text || !json_parser_load_from_data(parser, text, -1, NULL) ||
        !(root = json_object_of(json_parser_get_root(parser)))) {
        g_set_error_literal(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                            "mdevctl's description of the vGPU is not a JSON object");
        return FALSE;
    }
    wanted->autostart = g_strcmp0(json_text_in(root, "start"), "auto") == 0;
    return read_attributes(wanted, root, error);
}

char *configuration_value(HostRoot *root, const Vgpu *vgpu, const Attribute *attribute)
{
    g_autofree char *path = g_build_filename(vgpu->dir, attribute_file(attribute), NULL);
    char *text = root_read(root, path, NULL);

    return text ? g_strstrip(text) : g_strdup("");
}

char *configuration_list(HostRoot *root, const Vgpu *vgpu)
{
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_ARRAY);
    JsonArray *array = json_array_new();
    const Attribute *list;
    guint count = attributes_get(&list);

    for (guint i = 0; i < count; i++) {
        g_autofree char *text = configuration_value(root, vgpu, &list[i]);
        JsonObject *object;

        if (!*text)
            continue;
        object = json_object_new();
        json_object_set_string_member(object, list[i].name, text);
        json_array_add_object_element(array, object);
    }
    json_node_take_array(node, array);
    return json_to_string(node, FALSE);
}
