/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/dra/resource_slice.h"

#include <string.h>

#include "fleet/kubernetes/dra/quantity.h"
#include "fleet/kubernetes/names.h"

#define MIN_MEMORY "64Mi"
#define STEP       "1Mi"
#define MIB_MASK   ((G_GUINT64_CONSTANT(1) << 20) - 1)

#define GIGA G_GUINT64_CONSTANT(1000000000)

/* Of a string attribute. */
#define TEXT_MAX 64

static void add_text(JsonBuilder *json, const char *name, const char *text)
{
    json_builder_set_member_name(json, name);
    json_builder_add_string_value(json, text);
}

static void begin_object(JsonBuilder *json, const char *name)
{
    if (name)
        json_builder_set_member_name(json, name);
    json_builder_begin_object(json);
}

static void add_attribute(JsonBuilder *json, const char *name, const char *type, const char *text)
{
    if (!*text || strlen(text) > TEXT_MAX)
        return;
    begin_object(json, name);
    add_text(json, type, text);
    json_builder_end_object(json);
}

/* The API wants a semantic version: three numbers. */
static gboolean is_version(const char *text)
{
    return g_regex_match_simple("^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)$", text,
                                G_REGEX_DEFAULT, G_REGEX_MATCH_DEFAULT);
}

/* Not a GPU that is software, "soft:0". */
static gboolean is_pci_address(const char *text)
{
    return g_regex_match_simple("^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]$", text,
                                G_REGEX_DEFAULT, G_REGEX_MATCH_DEFAULT);
}

static void add_number(JsonBuilder *json, const char *name, gint64 number)
{
    begin_object(json, name);
    json_builder_set_member_name(json, "int");
    json_builder_add_int_value(json, number);
    json_builder_end_object(json);
}

void resource_slice_add_attributes(JsonBuilder *json, const AgentGpu *gpu)
{
    add_attribute(json, "model", "string", gpu->model);
    add_attribute(json, "uuid", "string", gpu->uuid);
    add_attribute(json, "address", "string", gpu->address);
    if (is_version(gpu->vulkan))
        add_attribute(json, "vulkan", "version", gpu->vulkan);
    if (gpu->numa >= 0) {
        add_number(json, "numaNode", gpu->numa);
        add_number(json, KUBE_STANDARD "numaNode", gpu->numa);
    }
    /* Parts of two models are compared by these: 30 % of one may be more than all of another. */
    if (gpu->flops)
        add_number(json, "fp32Gflops", (gint64)(gpu->flops / GIGA));
    if (gpu->bandwidth)
        add_number(json, "memoryGBs", (gint64)(gpu->bandwidth / GIGA));
    for (guint i = 0; gpu->features[i]; i++) {
        g_autofree char *name = g_strdelimit(g_strdup(gpu->features[i]), "-.", '_');

        begin_object(json, name);
        json_builder_set_member_name(json, "bool");
        json_builder_add_boolean_value(json, TRUE);
        json_builder_end_object(json);
    }
    /* Names that all drivers have, so that claims can ask for devices of several that are near. */
    if (is_pci_address(gpu->address))
        add_attribute(json, KUBE_STANDARD "pciBusID", "string", gpu->address);
    add_attribute(json, KUBE_STANDARD "pcieRoot", "string", gpu->pcie_root);
    /* NVIDIA's own driver has no name for it, nor has Kubernetes. */
    add_attribute(json, "nvlinkDomain", "string", gpu->nvlink);
}

static void add_capacity(JsonBuilder *json, const char *name, const char *value, const char *normal,
                         const char *least, const char *step)
{
    begin_object(json, name);
    add_text(json, "value", value);
    begin_object(json, "requestPolicy");
    add_text(json, "default", normal);
    begin_object(json, "validRange");
    add_text(json, "min", least);
    add_text(json, "max", value);
    add_text(json, "step", step);
    json_builder_end_object(json);
    json_builder_end_object(json);
    json_builder_end_object(json);
}

static void add_taint(JsonBuilder *json, const char *key, const char *effect)
{
    begin_object(json, NULL);
    add_text(json, "key", key);
    add_text(json, "effect", effect);
    json_builder_end_object(json);
}

static void add_device(JsonBuilder *json, const AgentGpu *gpu)
{
    g_autofree char *name = kube_device_name(gpu->address);
    g_autofree char *memory = quantity_format(gpu->capacity & ~MIB_MASK);

    begin_object(json, NULL);
    add_text(json, "name", name);
    json_builder_set_member_name(json, "allowMultipleAllocations");
    json_builder_add_boolean_value(json, TRUE);
    begin_object(json, "attributes");
    resource_slice_add_attributes(json, gpu);
    json_builder_end_object(json);
    begin_object(json, "capacity");
    /* Who asks for no amount gets the card. */
    add_capacity(json, "memory", memory, memory, MIN_MEMORY, STEP);
    add_capacity(json, "compute", "100", "0", "0", "1");
    json_builder_end_object(json);
    if (gpu->problem || gpu->is_draining) {
        json_builder_set_member_name(json, "taints");
        json_builder_begin_array(json);
        if (gpu->problem)
            add_taint(json, KUBE_DRIVER "/unhealthy", gpu->is_broken ? "NoExecute" : "NoSchedule");
        if (gpu->is_draining)
            add_taint(json, KUBE_DRIVER "/draining", "NoSchedule");
        json_builder_end_array(json);
    }
    json_builder_end_object(json);
}

JsonNode *resource_slice_devices(const GPtrArray *gpus)
{
    g_autoptr(JsonBuilder) json = json_builder_new();

    json_builder_begin_array(json);
    for (guint i = 0; i < MIN(gpus->len, RESOURCE_SLICE_DEVICES_MAX); i++)
        add_device(json, gpus->pdata[i]);
    json_builder_end_array(json);
    return json_builder_get_root(json);
}

static void add_metadata(JsonBuilder *json, const char *node, const char *node_uid,
                         const char *name, const char *version)
{
    begin_object(json, "metadata");
    if (name) {
        add_text(json, "name", name);
        add_text(json, "resourceVersion", version);
    } else {
        g_autofree char *prefix = g_strconcat(node, "-" KUBE_DRIVER "-", NULL);

        add_text(json, "generateName", prefix);
    }
    /* It goes with the node. */
    if (*node_uid) {
        json_builder_set_member_name(json, "ownerReferences");
        json_builder_begin_array(json);
        begin_object(json, NULL);
        add_text(json, "apiVersion", "v1");
        add_text(json, "kind", "Node");
        add_text(json, "name", node);
        add_text(json, "uid", node_uid);
        json_builder_set_member_name(json, "controller");
        json_builder_add_boolean_value(json, TRUE);
        json_builder_end_object(json);
        json_builder_end_array(json);
    }
    json_builder_end_object(json);
}

char *resource_slice_text(const char *node, const char *node_uid, JsonNode *devices,
                          gint64 generation, const char *name, const char *version)
{
    g_autoptr(JsonBuilder) json = json_builder_new();
    g_autoptr(JsonNode) root = NULL;

    begin_object(json, NULL);
    add_text(json, "apiVersion", "resource.k8s.io/v1");
    add_text(json, "kind", "ResourceSlice");
    add_metadata(json, node, node_uid, name, version);
    begin_object(json, "spec");
    add_text(json, "driver", KUBE_DRIVER);
    add_text(json, "nodeName", node);
    begin_object(json, "pool");
    add_text(json, "name", node);
    json_builder_set_member_name(json, "generation");
    json_builder_add_int_value(json, generation);
    json_builder_set_member_name(json, "resourceSliceCount");
    json_builder_add_int_value(json, 1);
    json_builder_end_object(json);
    json_builder_set_member_name(json, "devices");
    json_builder_add_value(json, json_node_copy(devices));
    json_builder_end_object(json);
    json_builder_end_object(json);
    root = json_builder_get_root(json);
    return json_to_string(root, TRUE);
}
