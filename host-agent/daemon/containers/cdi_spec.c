/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/containers/cdi_spec.h"

#include <json-glib/json-glib.h>

#include "host-agent/daemon/containers/transport.h"
#include "lib/host_root.h"

/*
 * The first version that allows names with a leading digit, as UUIDs may have; docker 25 supports
 * 0.6.0.
 */
#define CDI_VERSION "0.5.0"

#define HOOK         "/lib/mdev-vgpu/vgpu-container-hook"
#define HOOK_TIMEOUT 40
#define MANIFEST     "/usr/share/vulkan/implicit_layer.d/VkLayer_vgpu_governor.json"
/* In the container. */
#define SLICES_DIR "/run/vgpu/slices"
#define VTEST_DIR  "/run/vgpu/vtest"

CdiLayer *cdi_layer_find(HostRoot *root)
{
    static const char *const places[] = {MANIFEST, "/usr/local/share/vulkan/implicit_layer.d/"
                                                   "VkLayer_vgpu_governor.json"};

    for (guint i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autofree char *text = root_read(root, places[i], NULL);
        g_autoptr(JsonParser) parser = json_parser_new();
        g_autoptr(JsonNode) found = NULL;
        JsonArray *list;
        CdiLayer *layer;

        if (!text || !json_parser_load_from_data(parser, text, -1, NULL))
            continue;
        found = json_path_query("$.layer.library_path", json_parser_get_root(parser), NULL);
        list = found && JSON_NODE_HOLDS_ARRAY(found) ? json_node_get_array(found) : NULL;
        if (!list || json_array_get_length(list) != 1 ||
            !g_path_is_absolute(json_array_get_string_element(list, 0)))
            continue;
        layer = g_new0(CdiLayer, 1);
        layer->manifest = g_strdup(places[i]);
        layer->library = g_strdup(json_array_get_string_element(list, 0));
        return layer;
    }
    return NULL;
}

const char *cdi_hook_find(HostRoot *root)
{
    gboolean is_local = !root_has(root, "/usr" HOOK) && root_has(root, "/usr/local" HOOK);

    return is_local ? "/usr/local" HOOK : "/usr" HOOK;
}

void cdi_layer_free(CdiLayer *layer)
{
    g_free(layer->manifest);
    g_free(layer->library);
    g_free(layer);
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

static void add_list(JsonBuilder *json, const char *name, const char *const *texts)
{
    begin_list(json, name);
    for (guint i = 0; texts[i]; i++)
        json_builder_add_string_value(json, texts[i]);
    json_builder_end_array(json);
}

static void add_node(JsonBuilder *json, const char *node)
{
    g_autofree char *path = g_strconcat("/dev/", node, NULL);

    json_builder_begin_object(json);
    add_text(json, "path", path);
    /* Not m: no other node is created there. */
    add_text(json, "permissions", "rw");
    json_builder_end_object(json);
}

static void add_nodes(JsonBuilder *json, const CdiDevice *device)
{
    if (!device->node && !device->cuda_nodes)
        return;
    begin_list(json, "deviceNodes");
    if (device->slice->transport == SLICE_TRANSPORT_VFIO)
        add_node(json, "vfio/vfio");
    if (device->node)
        add_node(json, device->node);
    for (guint i = 0; device->cuda_nodes && device->cuda_nodes[i]; i++)
        add_node(json, device->cuda_nodes[i]);
    json_builder_end_array(json);
}

static void add_mount(JsonBuilder *json, const char *from, const char *to)
{
    static const char *const options[] = {"ro", "nosuid", "nodev", "bind", NULL};

    json_builder_begin_object(json);
    add_text(json, "hostPath", from);
    add_text(json, "containerPath", to);
    add_list(json, "options", options);
    json_builder_end_object(json);
}

static void add_cuda(JsonBuilder *json, const Slice *slice, const CudaDoor *cuda)
{
    g_autoptr(GPtrArray) mounts = cuda_door_mounts(cuda, slice->engines);

    for (guint i = 0; i < mounts->len; i++) {
        const CudaMount *mount = g_ptr_array_index(mounts, i);

        add_mount(json, mount->from, mount->to);
    }
}

/*
 * A container may have several: the parts of one slice have their own paths, and the common parts
 * are equal. @cuda: NULL: the slice has none.
 */
static void add_native(JsonBuilder *json, const Slice *slice, const CdiLayer *layer,
                       const CudaDoor *cuda)
{
    /* The last one keeps NVIDIA's own runtime from adding its driver to ours. */
    const char *const env[] = {"VGPU_GOVERNOR=1", "VGPU_GOVERNOR_REQUIRED=1",
                               "VGPU_GOVERNOR_SLICES=" SLICES_DIR,
                               cuda ? "NVIDIA_VISIBLE_DEVICES=void" : NULL, NULL};
    g_autofree char *dir = g_strconcat(CONTAINERS_DIR "/", slice->uuid, "/slice", NULL);
    g_autofree char *inside = g_strconcat(SLICES_DIR "/", slice->gpu, "/", slice->uuid, NULL);
    g_autofree char *folder = g_path_get_dirname(layer->library);
    g_autofree char *member = g_build_filename(folder, "libvgpu-member.so.1", NULL);

    add_list(json, "env", env);
    begin_list(json, "mounts");
    /* The directory, so that a restarted arbiter is found. */
    add_mount(json, dir, inside);
    add_mount(json, layer->library, layer->library);
    add_mount(json, member, member);
    add_mount(json, layer->manifest, MANIFEST);
    if (cuda)
        add_cuda(json, slice, cuda);
    json_builder_end_array(json);
}

/*
 * Mesa takes one socket for each VkInstance. If several devices set a variable, the last one's
 * value is used.
 */
static void add_guarded(JsonBuilder *json, const Slice *slice)
{
    const char *name = *slice->name ? slice->name : slice->uuid;
    g_autofree char *inside = g_strconcat(VTEST_DIR "/", name, ".sock", NULL);
    g_autofree char *chosen = g_strconcat("VTEST_SOCKET_NAME=", inside, NULL);
    g_autofree char *socket = g_strconcat(GUARD_DIR "/", slice->uuid, "/" GUARD_SOCKET, NULL);
    const char *const env[] = {"VN_DEBUG=vtest", chosen, NULL};

    add_list(json, "env", env);
    begin_list(json, "mounts");
    add_mount(json, socket, inside);
    json_builder_end_array(json);
}

static void begin_hook(JsonBuilder *json, const char *hook, const char *name,
                       const char *const *args)
{
    json_builder_begin_object(json);
    add_text(json, "hookName", name);
    add_text(json, "path", hook);
    add_list(json, "args", args);
    json_builder_set_member_name(json, "timeout");
    json_builder_add_int_value(json, HOOK_TIMEOUT);
}

static void add_hook(JsonBuilder *json, const char *hook, const char *name, const char *verb,
                     const char *uuid)
{
    const char *const args[] = {"vgpu-container-hook", verb, uuid, NULL};

    begin_hook(json, hook, name, args);
    json_builder_end_object(json);
}

/*
 * Runs as root with the image as its working directory. With an environment of its own it does not
 * get the container's, in which an image may have LD_PRELOAD (CVE-2025-23266 was that).
 */
static void add_cuda_hook(JsonBuilder *json, const char *hook, const CudaDoor *cuda)
{
    const char *const args[] = {"vgpu-container-hook", "cuda", cuda->folder, NULL};
    static const char *const env[] = {"LC_ALL=C.UTF-8", NULL};

    begin_hook(json, hook, "createContainer", args);
    add_list(json, "env", env);
    json_builder_end_object(json);
}

static void add_device(JsonBuilder *json, const char *name, const CdiDevice *device,
                       const CdiLayer *layer, const CudaDoor *cuda, const char *hook)
{
    const Slice *slice = device->slice;

    json_builder_begin_object(json);
    add_text(json, "name", name);
    json_builder_set_member_name(json, "containerEdits");
    json_builder_begin_object(json);
    add_nodes(json, device);
    if (slice->transport == SLICE_TRANSPORT_NATIVE)
        add_native(json, slice, layer, device->cuda_nodes ? cuda : NULL);
    else if (slice->transport == SLICE_TRANSPORT_GUARDED)
        add_guarded(json, slice);
    begin_list(json, "hooks");
    add_hook(json, hook, "createRuntime", "claim", slice->uuid);
    if (device->cuda_nodes)
        add_cuda_hook(json, hook, cuda);
    add_hook(json, hook, "poststop", "release", slice->uuid);
    json_builder_end_array(json);
    json_builder_end_object(json);
    json_builder_end_object(json);
}

static guint add_devices(JsonBuilder *json, const GPtrArray *devices, const CdiLayer *layer,
                         const CudaDoor *cuda, const char *hook)
{
    guint count = 0;

    begin_list(json, "devices");
    for (guint i = 0; i < devices->len; i++) {
        const CdiDevice *device = g_ptr_array_index(devices, i);

        if (device->slice->transport == SLICE_TRANSPORT_NATIVE && !layer)
            continue;
        add_device(json, device->slice->uuid, device, layer, cuda, hook);
        if (*device->slice->name)
            add_device(json, device->slice->name, device, layer, cuda, hook);
        count++;
    }
    json_builder_end_array(json);
    return count;
}

char *cdi_spec(const GPtrArray *devices, const CdiLayer *layer, const CudaDoor *cuda,
               const char *hook)
{
    g_autoptr(JsonBuilder) json = json_builder_new();
    g_autoptr(JsonNode) root = NULL;
    g_autofree char *text = NULL;

    json_builder_begin_object(json);
    add_text(json, "cdiVersion", CDI_VERSION);
    add_text(json, "kind", CDI_KIND);
    if (!add_devices(json, devices, layer, cuda, hook))
        return NULL;
    json_builder_end_object(json);
    root = json_builder_get_root(json);
    text = json_to_string(root, TRUE);
    return g_strconcat(text, "\n", NULL);
}
