/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/sync/cdi.h"

#include <string.h>
#include <json-glib/json-glib.h>

#include "lib/pci.h"
#include "host-agent/daemon/containers/transport.h"
#include "host-agent/daemon/host/authority.h"

#define CDI_KIND "mdev-vgpu.org/slice"

/* The names in the programs' command lines. */
#define CDI_DIR  "/run/cdi"
#define CDI_FILE CDI_DIR "/mdev-vgpu.json"

/**
 * CdiDevice - an available slice
 * @node: of the GPU, as "dri/renderD128"; of a vGPU as "vfio/16"; NULL: none
 * @cuda_nodes: of the GPU for CUDA, as "nvidia0"; up to NULL; NULL: it has no CUDA
 */
typedef struct {
    const Slice *slice;
    const char *node;
    const char *const *cuda_nodes;
} CdiDevice;

/* Containers' devices in CDI (Container Device Interface). */

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

/* Where the containers' hook is installed; the system's path if it is nowhere. */
static const char *cdi_hook_find(HostRoot *root)
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

/*
 * The specification, to be freed. @devices: of CdiDevice, by their UUIDs; NULL if there is none:
 * CDI has no specification without devices. @layer: NULL: slices with transport native are left
 * out. @cuda: NULL: no device has CUDA. @hook: path.
 */
static char *cdi_spec(const GPtrArray *devices, const CdiLayer *layer, const CudaDoor *cuda,
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

/* /run/cdi/mdev-vgpu.json, kept in step with the slices; and the manager's method GetCdi. */

struct CdiSync {
    Host *host;
    const Slices *slices;
    gboolean started;
    char *text; /* the last written content; NULL: none */
};

typedef struct {
    CdiDevice device;
    char *node;
    GStrv cuda_nodes;
} Found;

static void found_free(void *data)
{
    Found *found = data;

    g_free(found->node);
    g_strfreev(found->cuda_nodes);
    g_free(found);
}

static int by_uuid(const void *a, const void *b)
{
    return strcmp((*(const CdiDevice *const *)a)->slice->uuid,
                  (*(const CdiDevice *const *)b)->slice->uuid);
}

/* "dri/renderD128": with this node a program cannot set video modes, nor read others' screens. */
static char *render_node(const Gpu *gpu)
{
    for (guint i = 0; gpu->drm_nodes[i]; i++)
        if (g_str_has_prefix(gpu->drm_nodes[i], "renderD"))
            return g_strconcat("dri/", gpu->drm_nodes[i], NULL);
    return NULL;
}

static char *vfio_node(HostRoot *root, const char *uuid)
{
    g_auto(GStrv) nodes = nodes_of_vgpu(root, uuid);

    for (guint i = 0; nodes[i]; i++)
        if (g_str_has_prefix(nodes[i], "vfio/"))
            return g_strdup(nodes[i]);
    return NULL;
}

/* NULL: the slice has no CUDA. @cuda: NULL: the host has none. */
static GStrv find_cuda_nodes(const CdiSync *link, const Slice *slice, const CudaDoor *cuda)
{
    g_auto(GStrv) nodes = NULL;

    if (!cuda || slice->transport != SLICE_TRANSPORT_NATIVE)
        return NULL;
    nodes = cuda_door_nodes(host_root(link->host), slice->gpu);
    return nodes[0] ? g_steal_pointer(&nodes) : NULL;
}

/*
 * FALSE: a container cannot use it now. A GPU without hardware has no node, and one for computing
 * alone has those of CUDA only.
 */
static gboolean find_nodes(const CdiSync *link, const Slice *slice, const CudaDoor *cuda,
                           Found *found)
{
    const Gpu *gpu = host_gpu(link->host, slice->gpu);

    if (!gpu || gpu->mode != GPU_MODE_SHARED || !slice->present || slice->reserved ||
        slice->leaving)
        return FALSE;
    if (slice->transport == SLICE_TRANSPORT_GUARDED)
        return TRUE;
    if (slice->transport == SLICE_TRANSPORT_VFIO)
        found->node = vfio_node(host_root(link->host), slice->uuid);
    else
        found->node = render_node(gpu);
    found->cuda_nodes = find_cuda_nodes(link, slice, cuda);
    return found->node || found->cuda_nodes || gpu_name_is_soft(slice->gpu);
}

static GPtrArray *devices(const CdiSync *link, const CudaDoor *cuda)
{
    const GPtrArray *slices = slices_all(link->slices);
    GPtrArray *list = g_ptr_array_new_with_free_func(found_free);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        Found *found;

        if (!slice_is_for_container(slice))
            continue;
        found = g_new0(Found, 1);
        if (!find_nodes(link, slice, cuda, found)) {
            found_free(found);
            continue;
        }
        found->device = (CdiDevice){slice, found->node, (const char *const *)found->cuda_nodes};
        g_ptr_array_add(list, found);
    }
    g_ptr_array_sort(list, by_uuid);
    return list;
}

static char *spec(const CdiSync *link)
{
    g_autoptr(CudaDoor) cuda = cuda_door_find(host_root(link->host));
    g_autoptr(GPtrArray) list = devices(link, cuda);
    g_autoptr(CdiLayer) layer = cdi_layer_find(host_root(link->host));

    return cdi_spec(list, layer, cuda, cdi_hook_find(host_root(link->host)));
}

static void put(HostRoot *root, const char *text)
{
    g_autofree char *dir = g_path_get_dirname(CDI_FILE);
    g_autoptr(GError) error = NULL;

    if (!text) {
        root_remove(root, CDI_FILE);
        return;
    }
    if (!root_mkdir(root, dir, 0755, &error) || !root_write(root, CDI_FILE, text, 0644, &error))
        g_warning("cannot offer slices to containers: %s", error->message);
}

static void write_now(CdiSync *link, gboolean always)
{
    g_autofree char *text = spec(link);

    if (!always && g_strcmp0(text, link->text) == 0)
        return;
    put(host_root(link->host), text);
    g_free(link->text);
    link->text = g_steal_pointer(&text);
}

void cdi_sync_refresh(CdiSync *link)
{
    if (link->started)
        write_now(link, FALSE);
}

void cdi_sync_update(CdiSync *link, const char *uuid)
{
    const Slice *slice = slices_find(link->slices, uuid);

    /* The vGPUs of VMs, of which there may be a thousand, are not in the file. */
    if ((slice && slice_is_for_container(slice)) || (link->text && strstr(link->text, uuid)))
        cdi_sync_refresh(link);
}

void cdi_sync_start(CdiSync *link)
{
    link->started = TRUE;
    write_now(link, TRUE);
}

static void get_allowed(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const CdiSync *link = data;
    g_autofree char *text = spec(link);

    (void)caller;
    vgpu_manager_complete_get_cdi(host_manager(link->host), invocation, text ? text : "");
}

CdiSync *cdi_sync_new(Host *host, const Slices *slices)
{
    CdiSync *link = g_new0(CdiSync, 1);

    link->host = host;
    link->slices = slices;
    authority_answer(host_manager(host), "handle-get-cdi", ACTION_SEE, get_allowed, NULL, link);
    return link;
}

void cdi_sync_free(CdiSync *link)
{
    g_signal_handlers_disconnect_by_data(host_manager(link->host), link);
    g_free(link->text);
    g_free(link);
}
