/* SPDX-License-Identifier: MIT */
#include "lib/json.h"

JsonObject *json_object_of(JsonNode *node)
{
    return node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

const char *json_text_of(JsonNode *node)
{
    return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING
               ? json_node_get_string(node)
               : NULL;
}

static JsonNode *member_of(JsonObject *object, const char *name)
{
    return object ? json_object_get_member(object, name) : NULL;
}

JsonObject *json_object_in(JsonObject *object, const char *name)
{
    return json_object_of(member_of(object, name));
}

JsonArray *json_array_in(JsonObject *object, const char *name)
{
    JsonNode *node = member_of(object, name);

    return node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

const char *json_text_in(JsonObject *object, const char *name)
{
    return json_text_of(member_of(object, name));
}

guint json_length(JsonArray *array)
{
    return array ? json_array_get_length(array) : 0;
}

JsonObject *json_object_at(JsonArray *array, guint place)
{
    return json_object_of(json_array_get_element(array, place));
}
