/* SPDX-License-Identifier: MIT */
/*
 * The node's ResourceSlice of resource.k8s.io/v1: what the scheduler knows of its cards. Pure.
 *
 * One slice has up to 64 devices if they may have taints, which no host exceeds.
 */
#ifndef KUBERNETES_DRA_RESOURCE_SLICE_H
#define KUBERNETES_DRA_RESOURCE_SLICE_H

#include <json-glib/json-glib.h>

#include "fleet/kubernetes/agent.h"

#define RESOURCE_SLICE_DEVICES_MAX 64

/* Of one card, as members of the object that @json is in. */
void resource_slice_add_attributes(JsonBuilder *json, const AgentGpu *gpu);

/* The devices of a slice's spec. @gpus: of AgentGpu. To be freed. */
JsonNode *resource_slice_devices(const GPtrArray *gpus);

/*
 * A whole ResourceSlice. @devices: from above. @name, @version: of the object that it replaces;
 * NULL: a new one, whose name begins with the node's. @node_uid: "": not known. To be freed.
 */
char *resource_slice_text(const char *node, const char *node_uid, JsonNode *devices,
                          gint64 generation, const char *name, const char *version);

#endif
