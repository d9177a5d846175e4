/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/dra/claim.h"

#include <string.h>
#include <json-glib/json-glib.h>

#include "fleet/kubernetes/dra/quantity.h"
#include "fleet/kubernetes/dra/slice_config.h"
#include "fleet/kubernetes/names.h"
#include "lib/json.h"
#include "lib/refuse.h"

void claim_free(Claim *claim)
{
    g_free(claim->uid);
    g_free(claim->namespace);
    g_free(claim->name);
    g_free(claim->pod_claim);
    g_free(claim->owner);
    g_ptr_array_unref(claim->slices);
    g_ptr_array_unref(claim->requests);
    g_ptr_array_unref(claim->devices);
    g_ptr_array_unref(claim->shares);
    g_free(claim);
}

/* A configuration for request "a" is for "a" and for its alternatives "a/b"; without any, for all.
 */
static gboolean is_for(JsonArray *requests, const char *request)
{
    for (guint i = 0; i < json_length(requests); i++) {
        const char *name = json_text_of(json_array_get_element(requests, i));

        if (name && g_str_has_prefix(request, name) &&
            (!request[strlen(name)] || request[strlen(name)] == '/'))
            return TRUE;
    }
    return !json_length(requests);
}

static gboolean add_configs(SliceSettings *settings, JsonArray *configs, const char *request,
                            GError **error)
{
    for (guint i = 0; i < json_length(configs); i++) {
        JsonObject *config = json_object_at(configs, i), *opaque = json_object_in(config, "opaque");
        JsonObject *parameters = json_object_in(opaque, "parameters");
        const char *source = json_text_in(config, "source");

        if (g_strcmp0(json_text_in(opaque, "driver"), KUBE_DRIVER) ||
            !is_for(json_array_in(config, "requests"), request))
            continue;
        if (!parameters)
            return refuse_with(error, G_IO_ERROR_INVALID_DATA,
                               "the parameters of request %s are no object", request);
        if (!slice_settings_add(settings, parameters, g_strcmp0(source, "FromClass") == 0, error))
            return FALSE;
    }
    return TRUE;
}

static const AgentGpu *gpu_of(const GPtrArray *gpus, const char *device)
{
    for (guint i = 0; i < gpus->len; i++) {
        const AgentGpu *gpu = gpus->pdata[i];
        g_autofree char *name = kube_device_name(gpu->address);

        if (g_strcmp0(name, device) == 0)
            return gpu;
    }
    return NULL;
}

/* The API leaves the driver's domain out of a name, or not. Missing: @otherwise. */
static gboolean amount_of(JsonObject *consumed, const char *name, guint64 otherwise,
                          guint64 *amount, GError **error)
{
    g_autofree char *whole = g_strconcat(KUBE_DRIVER "/", name, NULL);
    JsonNode *node = consumed ? json_object_get_member(consumed, name) : NULL;
    const char *text;

    if (consumed && !node)
        node = json_object_get_member(consumed, whole);
    *amount = otherwise;
    if (!node)
        return TRUE;
    text = json_text_of(node);
    return (text && quantity_parse(text, amount)) ||
           refuse_with(error, G_IO_ERROR_INVALID_DATA, "the consumed %s is no amount", name);
}

/* Without amounts the cluster knows no parts of a card, and the claim has all of it. */
static gboolean set_amounts(AgentSlice *slice, JsonObject *consumed, const AgentGpu *gpu,
                            GError **error)
{
    guint64 compute;

    if (!amount_of(consumed, "memory", gpu->capacity, &slice->vram, error) ||
        !amount_of(consumed, "compute", consumed ? 0 : 100, &compute, error))
        return FALSE;
    if (!slice->vram || slice->vram > gpu->capacity)
        return refuse_with(error, G_IO_ERROR_INVALID_DATA,
                           "GPU %s has %" G_GUINT64_FORMAT " bytes, and not the %" G_GUINT64_FORMAT
                           " of the claim",
                           gpu->address, gpu->capacity, slice->vram);
    if (compute > 100)
        return refuse_with(error, G_IO_ERROR_INVALID_DATA,
                           "the claim has %" G_GUINT64_FORMAT " %% of compute", compute);
    slice->compute = (gint)compute;
    return TRUE;
}

/* "REQUEST", or "REQUEST/ALTERNATIVE". */
static gboolean is_request(const char *text)
{
    g_auto(GStrv) names = text ? g_strsplit(text, "/", 3) : NULL;

    if (!names || !names[0] || (names[1] && names[2]))
        return FALSE;
    return kube_is_name(names[0]) && (!names[1] || kube_is_name(names[1]));
}

/* The results of an allocation never change, so their places tell them apart. */
static AgentSlice *read_slice(JsonObject *result, guint place, JsonArray *configs,
                              const ClaimSetting *setting, GError **error)
{
    g_auto(SliceSettings) settings = SLICE_SETTINGS_INIT;
    g_autoptr(AgentSlice) slice = g_new0(AgentSlice, 1);
    const char *request = json_text_in(result, "request");
    const AgentGpu *gpu = gpu_of(setting->gpus, json_text_in(result, "device"));
    JsonNode *admin = json_object_get_member(result, "adminAccess");

    if (!is_request(request)) {
        refuse_with(error, G_IO_ERROR_INVALID_DATA, "a request of the claim has no valid name");
        return NULL;
    }
    if (g_strcmp0(json_text_in(result, "pool"), setting->pool)) {
        refuse_with(error, G_IO_ERROR_INVALID_DATA,
                    "the claim has a device of another node's pool");
        return NULL;
    }
    if (!gpu) {
        refuse_with(error, G_IO_ERROR_INVALID_DATA, "this node has no device %s",
                    json_text_in(result, "device"));
        return NULL;
    }
    if (admin && json_node_get_boolean(admin)) {
        refuse_with(error, G_IO_ERROR_INVALID_DATA,
                    "request %s has adminAccess, which this driver does not know", request);
        return NULL;
    }
    slice->part = g_strdup_printf("%u", place);
    slice->gpu = g_strdup(gpu->address);
    if (!set_amounts(slice, json_object_in(result, "consumedCapacity"), gpu, error) ||
        !add_configs(&settings, configs, request, error) ||
        !slice_settings_apply(&settings, slice, error))
        return NULL;
    return g_steal_pointer(&slice);
}

static gboolean read_results(JsonObject *devices, const ClaimSetting *setting, Claim *claim,
                             GError **error)
{
    JsonArray *results = json_array_in(devices, "results"),
              *configs = json_array_in(devices, "config");

    if (json_length(results) > CLAIM_SLICES_MAX)
        return refuse_with(error, G_IO_ERROR_INVALID_DATA, "the claim has more than %d devices",
                           CLAIM_SLICES_MAX);
    for (guint i = 0; i < json_length(results); i++) {
        JsonObject *result = json_object_at(results, i);
        const char *share = result ? json_text_in(result, "shareID") : NULL;
        AgentSlice *slice;

        /* A claim may have devices of several drivers. */
        if (!result || g_strcmp0(json_text_in(result, "driver"), KUBE_DRIVER))
            continue;
        slice = read_slice(result, i, configs, setting, error);
        if (!slice)
            return FALSE;
        g_ptr_array_add(claim->slices, slice);
        g_ptr_array_add(claim->requests, g_strdup(json_text_in(result, "request")));
        g_ptr_array_add(claim->devices, g_strdup(json_text_in(result, "device")));
        g_ptr_array_add(claim->shares, g_strdup(share ? share : ""));
    }
    return claim->slices->len ||
           refuse_with(error, G_IO_ERROR_INVALID_DATA, "the claim has no device of " KUBE_DRIVER);
}

/* Its names become parts of paths. */
static gboolean read_names(JsonObject *metadata, Claim *claim, GError **error)
{
    JsonObject *annotations = json_object_in(metadata, "annotations");

    claim->namespace = g_strdup(json_text_in(metadata, "namespace"));
    claim->name = g_strdup(json_text_in(metadata, "name"));
    claim->pod_claim = g_strdup(json_text_in(annotations, "resource.kubernetes.io/pod-claim-name"));
    if (kube_is_name(claim->namespace) && kube_is_name(claim->name) &&
        (!claim->pod_claim || kube_is_name(claim->pod_claim)))
        return TRUE;
    return refuse_with(error, G_IO_ERROR_INVALID_DATA,
                       "the claim has no valid namespace, name or name in its pod");
}

static JsonObject *top_of(JsonParser *parser)
{
    JsonNode *node = json_parser_get_root(parser);

    return node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

Claim *claim_read(const char *text, gsize length, const char *uid, const ClaimSetting *setting,
                  GError **error)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(Claim) claim = g_new0(Claim, 1);
    JsonObject *top, *metadata, *allocation;

    claim->slices = g_ptr_array_new_with_free_func((GDestroyNotify)agent_slice_free);
    claim->requests = g_ptr_array_new_with_free_func(g_free);
    claim->devices = g_ptr_array_new_with_free_func(g_free);
    claim->shares = g_ptr_array_new_with_free_func(g_free);
    if (!json_parser_load_from_data(parser, text, (gssize)length, error))
        return NULL;
    top = top_of(parser);
    metadata = json_object_in(top, "metadata");
    allocation = json_object_in(json_object_in(top, "status"), "allocation");
    if (g_strcmp0(json_text_in(metadata, "uid"), uid)) {
        refuse_with(error, G_IO_ERROR_INVALID_DATA, "the claim of that name is another one now");
        return NULL;
    }
    if (!allocation) {
        refuse_with(error, G_IO_ERROR_INVALID_DATA, "the claim is not allocated");
        return NULL;
    }
    claim->uid = g_strdup(uid);
    claim->owner = g_strconcat(KUBE_CLAIM_OWNER, uid, NULL);
    if (!read_names(metadata, claim, error) ||
        !read_results(json_object_in(allocation, "devices"), setting, claim, error))
        return NULL;
    for (guint i = 0; i < claim->slices->len; i++) {
        AgentSlice *slice = claim->slices->pdata[i];

        slice->tenant = g_strdup(setting->tenant_is_namespace ? json_text_in(metadata, "namespace")
                                                              : setting->tenant);
    }
    return g_steal_pointer(&claim);
}

/* What the API says of an object of ours, and not of a path that it does not know. */
static gboolean is_about_claims(JsonObject *top, const char *reason)
{
    return g_strcmp0(json_text_in(top, "kind"), "Status") == 0 &&
           g_strcmp0(json_text_in(top, "reason"), reason) == 0 &&
           g_strcmp0(json_text_in(json_object_in(top, "details"), "kind"), "resourceclaims") == 0;
}

/* The words of Kubernetes' authorizer of nodes, which knows the claims of all pods. */
static gboolean is_no_pods(JsonObject *top)
{
    const char *message = json_text_in(top, "message");

    return message && strstr(message, "no relationship found between node");
}

static gboolean is_allocated(JsonObject *top, const char *pool)
{
    JsonObject *allocation = json_object_in(json_object_in(top, "status"), "allocation");
    JsonArray *results = json_array_in(json_object_in(allocation, "devices"), "results");

    for (guint i = 0; i < json_length(results); i++) {
        JsonObject *result = json_object_at(results, i);

        if (!result || (g_strcmp0(json_text_in(result, "driver"), KUBE_DRIVER) == 0 &&
                        g_strcmp0(json_text_in(result, "pool"), pool) == 0))
            return TRUE;
    }
    return FALSE;
}

gboolean claim_is_over(guint status, const char *text, gsize length, const char *uid,
                       const char *pool)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonObject *top;
    const char *now;

    if (!json_parser_load_from_data(parser, text, (gssize)length, NULL))
        return FALSE;
    top = top_of(parser);
    if (status == 404)
        return is_about_claims(top, "NotFound");
    if (status == 403)
        return is_about_claims(top, "Forbidden") && is_no_pods(top);
    now = json_text_in(json_object_in(top, "metadata"), "uid");
    return status == 200 && now && (!g_str_equal(now, uid) || !is_allocated(top, pool));
}
