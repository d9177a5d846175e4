/* SPDX-License-Identifier: MIT */
/*
 * YAML 1.2 of what is there as JSON.
 */
#ifndef VGPUCTL_YAML_H
#define VGPUCTL_YAML_H

#include <json-glib/json-glib.h>

/* A document in block style, members in the order of their names, strings in double quotes. To be
 * freed. */
char *yaml_of_json(JsonNode *node);

#endif
