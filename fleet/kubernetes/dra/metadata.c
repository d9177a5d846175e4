/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/dra/metadata.h"

#include <string.h>
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>

#include "fleet/kubernetes/dra/resource_slice.h"
#include "fleet/kubernetes/names.h"

#define CDI_DIR    "/run/cdi"
#define CDI_KIND   KUBE_DRIVER "/metadata"
#define CONTAINERS "/var/run/kubernetes.io/dra-device-attributes"

/**
 * Request - of a claim, without the alternative that was chosen
 * @name: "gpu"
 * @slices: places of its slices that are vGPUs, of guint
 */
typedef struct {
    char *name;
    GArray *slices;
} Request;

static void request_free(void *data)
{
    Request *request = data;

    g_free(request->name);
    g_array_unref(request->slices);
    g_free(request);
}

static Request *request_of(GPtrArray *requests, const char *full)
{
    g_autofree char *name = g_strndup(full, strcspn(full, "/"));
    Request *request;

    for (guint i = 0; i < requests->len; i++) {
        request = requests->pdata[i];
        if (g_str_equal(request->name, name))
            return request;
    }
    request = g_new0(Request, 1);
    request->name = g_steal_pointer(&name);
    request->slices = g_array_new(FALSE, FALSE, sizeof(guint));
    g_ptr_array_add(requests, request);
    return request;
}

static GPtrArray *requests_of(const Claim *claim, const char *const *mdevs)
{
    GPtrArray *requests = g_ptr_array_new_with_free_func(request_free);

    for (guint i = 0; i < claim->slices->len; i++)
        if (*mdevs[i])
            g_array_append_val(request_of(requests, claim->requests->pdata[i])->slices, i);
    return requests;
}

static void add_text(JsonBuilder *json, const char *name, const char *text)
{
    json_builder_set_member_name(json, name);
    json_builder_add_string_value(json, text);
}

static void begin_list(JsonBuilder *json, const char *name)
{
    json_builder_set_member_name(json, name);
    json_builder_begin_array(json);
}

static void begin_object(JsonBuilder *json, const char *name)
{
    if (name)
        json_builder_set_member_name(json, name);
    json_builder_begin_object(json);
}

static char *text_of(JsonBuilder *json)
{
    g_autoptr(JsonNode) root = json_builder_get_root(json);

    return json_to_string(root, TRUE);
}

static void add_mdev(JsonBuilder *json, const char *name, const char *uuid)
{
    begin_object(json, name);
    add_text(json, "string", uuid);
    json_builder_end_object(json);
}

static void add_device(JsonBuilder *json, const KubeConf *conf, const AgentSlice *slice,
                       const char *device, const GPtrArray *gpus, const char *mdev)
{
    const char *uuid = strrchr(mdev, '/');

    begin_object(json, NULL);
    add_text(json, "driver", KUBE_DRIVER);
    add_text(json, "pool", conf->node);
    add_text(json, "name", device);
    begin_object(json, "attributes");
    for (guint i = 0; i < gpus->len; i++)
        if (g_str_equal(((AgentGpu *)gpus->pdata[i])->address, slice->gpu))
            resource_slice_add_attributes(json, gpus->pdata[i]);
    add_mdev(json, "mdevUUID", uuid ? uuid + 1 : mdev);
    add_mdev(json, KUBE_STANDARD "mdevUUID", uuid ? uuid + 1 : mdev);
    json_builder_end_object(json);
    json_builder_end_object(json);
}

/* DeviceMetadata. The protocol has the name with the alternative here. */
static char *object_of_version(const char *version, const KubeConf *conf, const Claim *claim,
                               const Request *request, const GPtrArray *gpus,
                               const char *const *mdevs, gint64 generation)
{
    g_autofree char *full = g_strconcat("metadata.resource.k8s.io/", version, NULL);
    g_autoptr(JsonBuilder) json = json_builder_new();
    guint first = g_array_index(request->slices, guint, 0);

    begin_object(json, NULL);
    add_text(json, "apiVersion", full);
    add_text(json, "kind", "DeviceMetadata");
    begin_object(json, "metadata");
    add_text(json, "name", claim->name);
    add_text(json, "namespace", claim->namespace);
    add_text(json, "uid", claim->uid);
    json_builder_set_member_name(json, "generation");
    json_builder_add_int_value(json, generation);
    json_builder_end_object(json);
    if (claim->pod_claim)
        add_text(json, "podClaimName", claim->pod_claim);
    begin_list(json, "requests");
    begin_object(json, NULL);
    add_text(json, "name", claim->requests->pdata[first]);
    begin_list(json, "devices");
    for (guint i = 0; i < request->slices->len; i++) {
        guint at = g_array_index(request->slices, guint, i);

        add_device(json, conf, claim->slices->pdata[at], claim->devices->pdata[at], gpus,
                   mdevs[at]);
    }
    json_builder_end_array(json);
    json_builder_end_object(json);
    json_builder_end_array(json);
    json_builder_end_object(json);
    return text_of(json);
}

/*
 * The same in each version of the protocol, the newest first: readers take the first that they know
 * and skip those that they do not.
 */
static char *metadata_document(const KubeConf *conf, const Claim *claim, const Request *request,
                               const GPtrArray *gpus, const char *const *mdevs, gint64 generation)
{
    g_autofree char *beta =
        object_of_version("v1beta1", conf, claim, request, gpus, mdevs, generation);
    g_autofree char *alpha =
        object_of_version("v1alpha1", conf, claim, request, gpus, mdevs, generation);

    return g_strconcat(beta, "\n", alpha, "\n", NULL);
}

/* Of the first object. */
static gint64 generation_of(const char *text)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(JsonNode) found = NULL;
    const char *end = strstr(text, "\n}");
    JsonArray *list;

    if (!json_parser_load_from_data(parser, text, end ? end + strlen("\n}") - text : -1, NULL))
        return 0;
    found = json_path_query("$.metadata.generation", json_parser_get_root(parser), NULL);
    list = found && JSON_NODE_HOLDS_ARRAY(found) ? json_node_get_array(found) : NULL;
    return list && json_array_get_length(list) ? json_array_get_int_element(list, 0) : 0;
}

static char *folder_of(const KubeConf *conf, const char *uid)
{
    return g_build_filename(conf->kubelet, "plugins", KUBE_DRIVER, "metadata", uid, NULL);
}

static char *file_of(const KubeConf *conf, const Claim *claim, const Request *request)
{
    g_autofree char *folder = folder_of(conf, claim->uid);

    return g_strdup_printf("%s/%s.json", folder, request->name);
}

/* Readers must never see half of it: g_file_set_contents() renames. */
static gboolean write_document(const KubeConf *conf, const Claim *claim, const Request *request,
                               const GPtrArray *gpus, const char *const *mdevs, GError **error)
{
    g_autofree char *path = file_of(conf, claim, request), *before = NULL, *text = NULL;
    gint64 generation = 1;

    if (g_file_get_contents(path, &before, NULL, NULL)) {
        generation = MAX(generation_of(before), 1);
        text = metadata_document(conf, claim, request, gpus, mdevs, generation);
        if (g_str_equal(text, before))
            return TRUE;
        generation++;
        g_free(text);
    }
    text = metadata_document(conf, claim, request, gpus, mdevs, generation);
    return g_file_set_contents_full(path, text, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0644, error);
}

/* Where the container finds the file. */
static char *place_of(const Claim *claim, const Request *request)
{
    return g_strdup_printf(CONTAINERS "/%s/%s/%s/" KUBE_DRIVER "-metadata.json",
                           claim->pod_claim ? "resourceclaimtemplates" : "resourceclaims",
                           claim->pod_claim ? claim->pod_claim : claim->name, request->name);
}

static void add_mount(JsonBuilder *json, const KubeConf *conf, const Claim *claim,
                      const Request *request)
{
    g_autofree char *file = file_of(conf, claim, request), *place = place_of(claim, request);

    begin_list(json, "mounts");
    begin_object(json, NULL);
    add_text(json, "hostPath", file);
    add_text(json, "containerPath", place);
    begin_list(json, "options");
    for (const char *const *option = (const char *const[]){"ro", "nosuid", "nodev", "bind", NULL};
         *option; option++)
        json_builder_add_string_value(json, *option);
    json_builder_end_array(json);
    json_builder_end_object(json);
    json_builder_end_array(json);
}

static char *cdi_path(const char *uid)
{
    return g_strconcat(CDI_DIR "/mdev-vgpu-metadata-", uid, ".json", NULL);
}

static gboolean write_cdi(const KubeConf *conf, const Claim *claim, const GPtrArray *requests,
                          GError **error)
{
    g_autoptr(JsonBuilder) json = json_builder_new();
    g_autofree char *path = cdi_path(claim->uid), *text = NULL;

    begin_object(json, NULL);
    add_text(json, "cdiVersion", "0.5.0");
    add_text(json, "kind", CDI_KIND);
    begin_list(json, "devices");
    for (guint i = 0; i < requests->len; i++) {
        const Request *request = requests->pdata[i];
        g_autofree char *name = g_strdup_printf("%s_%s", claim->uid, request->name);

        begin_object(json, NULL);
        add_text(json, "name", name);
        begin_object(json, "containerEdits");
        add_mount(json, conf, claim, request);
        json_builder_end_object(json);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
    json_builder_end_object(json);
    text = text_of(json);
    return root_write(conf->root, path, text, 0644, error);
}

GStrv metadata_write(const KubeConf *conf, const Claim *claim, const GPtrArray *gpus,
                     const char *const *mdevs, GError **error)
{
    g_autoptr(GPtrArray) requests = requests_of(claim, mdevs);
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();
    g_autofree char *folder = folder_of(conf, claim->uid);

    if (requests->len)
        g_mkdir_with_parents(folder, 0755);
    for (guint i = 0; i < requests->len; i++)
        if (!write_document(conf, claim, requests->pdata[i], gpus, mdevs, error))
            return NULL;
    if (requests->len && !write_cdi(conf, claim, requests, error))
        return NULL;
    for (guint i = 0; i < claim->slices->len; i++) {
        const char *full = claim->requests->pdata[i];

        g_strv_builder_take(names, *mdevs[i] ? g_strdup_printf(CDI_KIND "=%s_%.*s", claim->uid,
                                                               (int)strcspn(full, "/"), full)
                                             : g_strdup(""));
    }
    return g_strv_builder_end(names);
}

void metadata_remove(const KubeConf *conf, const char *uid)
{
    g_autofree char *path = cdi_path(uid), *folder = folder_of(conf, uid);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;

    /* An administrator may name an owner as he likes. */
    if (!kube_is_name(uid))
        return;
    root_remove(conf->root, path);
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *file = g_build_filename(folder, name, NULL);

        g_remove(file);
    }
    if (dir)
        g_rmdir(folder);
}
