/* SPDX-License-Identifier: MIT */
/*
 * What is read of others' JSON. A member that is missing, or of another type, is NULL; json-glib's
 * own functions would print a critical message. So is every member of an object that is NULL.
 */
#ifndef LIB_JSON_H
#define LIB_JSON_H

#include <glib.h>
#include <json-glib/json-glib.h>

/* What a node holds. It may be NULL. */
JsonObject *json_object_of(JsonNode *node);
const char *json_text_of(JsonNode *node);

/* A member of an object. */
JsonObject *json_object_in(JsonObject *object, const char *name);
JsonArray *json_array_in(JsonObject *object, const char *name);
const char *json_text_in(JsonObject *object, const char *name);

/* Of an array, which may be NULL. */
guint json_length(JsonArray *array);
JsonObject *json_object_at(JsonArray *array, guint place);

#endif
