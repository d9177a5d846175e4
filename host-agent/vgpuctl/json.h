/* SPDX-License-Identifier: MIT */
/*
 * What is on D-Bus, as JSON: an object with a member for each property, named as the property is.
 */
#ifndef VGPUCTL_JSON_H
#define VGPUCTL_JSON_H

#include <gio/gio.h>
#include <json-glib/json-glib.h>

JsonNode *json_of_interface(GDBusProxy *proxy);

/* Writes it to standard output; takes @node. */
void json_print(JsonNode *node);

#endif
