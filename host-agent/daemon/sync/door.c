/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/sync/door.h"

#include <json-glib/json-glib.h>

#include "lib/mdev.h"
#include "lib/pci.h"

#define MANIFESTS        "/usr/share/vulkan/implicit_layer.d/"
#define MANIFEST         MANIFESTS "VkLayer_vgpu_governor.json"
#define GUARDED_MANIFEST "VkLayer_vgpu_guarded.json"
/* For containers. */
#define CONTAINER_MANIFEST "/run/vgpu/VkLayer_vgpu_governor.json"
/* In the container. */
#define SLICES_DIR "/run/vgpu/slices"
#define VTEST_DIR  "/run/vgpu/vtest"
/* A program finds the first without being told; by the others it can choose. */
#define CUDA_SOCKET_INSIDE "/run/vgpu/" CUDA_SOCKET
#define CUDA_SOCKETS_DIR   "/run/vgpu/cuda"
/* What vgpu-container-hook does. */
#define HOOK_CUDA        "put-cuda"
#define HOOK_CUDA_REMOTE "put-cuda-remote"

const char *const door_mount_options[] = {"ro", "nosuid", "nodev", "bind", NULL};

/* @places: up to NULL. */
static CdiLayer *layer_find(HostRoot *root, const char *const *places)
{
    for (guint i = 0; places[i]; i++) {
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

CdiLayer *cdi_layer_find(HostRoot *root)
{
    static const char *const places[] = {
        MANIFEST, "/usr/local/share/vulkan/implicit_layer.d/VkLayer_vgpu_governor.json", NULL};

    return layer_find(root, places);
}

/* The layer by which programs of a container find its guarded slice. NULL: it is not installed. */
static CdiLayer *guarded_layer_find(HostRoot *root)
{
    static const char *const places[] = {"/usr/lib/mdev-vgpu/" GUARDED_MANIFEST,
                                         "/usr/local/lib/mdev-vgpu/" GUARDED_MANIFEST, NULL};

    return layer_find(root, places);
}

void cdi_layer_free(CdiLayer *layer)
{
    g_free(layer->manifest);
    g_free(layer->library);
    g_free(layer);
}

/*
 * The layer's manifest as a container gets it: without the variable that enables it, which programs
 * of "docker exec" do not have. The host's own file if that cannot be written.
 */
static char *write_container_manifest(HostRoot *root, const CdiLayer *layer)
{
    g_autofree char *text = root_read(root, layer->manifest, NULL);
    g_autofree char *before = root_read(root, CONTAINER_MANIFEST, NULL);
    g_autofree char *after = NULL;
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(GError) error = NULL;
    JsonObject *object;

    if (!text || !json_parser_load_from_data(parser, text, -1, NULL))
        return g_strdup(layer->manifest);
    object = json_node_get_object(json_parser_get_root(parser));
    json_object_remove_member(json_object_get_object_member(object, "layer"), "enable_environment");
    after = json_to_string(json_parser_get_root(parser), TRUE);
    if (g_strcmp0(before, after) == 0 || root_write(root, CONTAINER_MANIFEST, after, 0644, &error))
        return g_strdup(CONTAINER_MANIFEST);
    g_warning("%s; programs of \"docker exec\" do not find a container's slice", error->message);
    return g_strdup(layer->manifest);
}

DoorHost *door_host_new(Host *host)
{
    DoorHost *of = g_new0(DoorHost, 1);

    of->host = host;
    of->layer = cdi_layer_find(host_root(host));
    if (of->layer)
        of->manifest = write_container_manifest(host_root(host), of->layer);
    of->guarded = guarded_layer_find(host_root(host));
    of->cuda = cuda_door_find(host_root(host));
    return of;
}

void door_host_free(DoorHost *host)
{
    g_clear_pointer(&host->layer, cdi_layer_free);
    g_free(host->manifest);
    g_clear_pointer(&host->guarded, cdi_layer_free);
    g_clear_pointer(&host->cuda, cuda_door_free);
    g_free(host);
}

void door_free(Door *door)
{
    g_strfreev(door->env);
    g_strfreev(door->container_env);
    g_strfreev(door->nodes);
    g_ptr_array_unref(door->mounts);
    g_free(door->mdev);
    g_free(door);
}

/* With this node a program cannot set video modes, nor read others' screens. */
static char *render_node(const Gpu *gpu)
{
    for (guint i = 0; gpu->drm_nodes[i]; i++)
        if (g_str_has_prefix(gpu->drm_nodes[i], "renderD"))
            return g_strconcat("/dev/dri/", gpu->drm_nodes[i], NULL);
    return NULL;
}

GStrv door_native_nodes(const DoorHost *host, const Gpu *gpu)
{
    g_auto(GStrv) cuda =
        host->cuda ? cuda_door_nodes(host_root(host->host), gpu->pci->address) : NULL;
    g_autoptr(GStrvBuilder) nodes = g_strv_builder_new();
    char *render = render_node(gpu);

    if (render)
        g_strv_builder_take(nodes, render);
    for (guint i = 0; cuda && cuda[i]; i++)
        g_strv_builder_take(nodes, g_strconcat("/dev/", cuda[i], NULL));
    return g_strv_builder_end(nodes);
}

static char *vfio_node(HostRoot *root, const char *uuid)
{
    g_auto(GStrv) nodes = nodes_of_vgpu(root, uuid);

    for (guint i = 0; nodes[i]; i++)
        if (g_str_has_prefix(nodes[i], "vfio/"))
            return g_strconcat("/dev/", nodes[i], NULL);
    return NULL;
}

/* Lists of a door while it is made. */
typedef struct {
    GStrvBuilder *env;
    GStrvBuilder *container_env;
    GStrvBuilder *nodes;
} Lists;

static void add_mount(Door *door, const char *from, const char *to)
{
    CudaMount *mount = g_new0(CudaMount, 1);

    mount->from = g_strdup(from);
    mount->to = g_strdup(to);
    g_ptr_array_add(door->mounts, mount);
}

static void add_path(GStrvBuilder *list, const char *name, const char *path)
{
    g_strv_builder_take(list, g_strconcat(name, path, NULL));
}

/* The loader is told where they are: a program of the host has no mounts. */
static void add_libraries(Door *door, const Lists *lists, const GPtrArray *mounts,
                          const char *libraries)
{
    for (guint i = 0; i < mounts->len; i++) {
        const CudaMount *mount = g_ptr_array_index(mounts, i);

        add_mount(door, mount->from, mount->to);
    }
    /* Keeps NVIDIA's own runtime from adding its driver to ours. */
    g_strv_builder_add(lists->container_env, "NVIDIA_VISIBLE_DEVICES=void");
    /* Julia's CUDA brings a driver of its own otherwise, past the door. */
    g_strv_builder_add(lists->env, "JULIA_CUDA_USE_COMPAT=false");
    g_strv_builder_add(lists->container_env, "JULIA_CUDA_USE_COMPAT=false");
    add_path(lists->env, "LD_LIBRARY_PATH=", libraries);
}

static void add_cuda(const DoorHost *of, const Slice *slice, Door *door, const Lists *lists)
{
    g_autoptr(GPtrArray) mounts = cuda_door_mounts(of->cuda, slice->engines);
    g_autofree char *libraries = cuda_door_libraries(of->cuda);

    add_libraries(door, lists, mounts, libraries);
}

/* Of a program: all of its owner's slices, or this one. */
static char *slices_of_program(const DoorHost *of, const Slice *slice)
{
    return *slice->owner ? root_path(host_root(of->host), OWNERS_DIR, slice->owner, NULL)
                         : slice_dirs_of_program(host_root(of->host), slice->uuid);
}

/*
 * A container may have several: the parts of one slice have their own paths, and the common parts
 * are equal.
 */
static void add_native(const DoorHost *of, const Slice *slice, Door *door, Lists *lists)
{
    static const char *const common[] = {"VGPU_GOVERNOR=1", "VGPU_GOVERNOR_REQUIRED=1"};
    g_autofree char *dir = g_strconcat(CONTAINERS_DIR "/", slice->uuid, "/slice", NULL);
    g_autofree char *inside = g_strconcat(SLICES_DIR "/", slice->gpu, "/", slice->uuid, NULL);
    g_autofree char *folder = g_path_get_dirname(of->layer->library);
    g_autofree char *member = g_build_filename(folder, "libvgpu-member.so.1", NULL);
    g_autofree char *program = slices_of_program(of, slice);

    for (guint i = 0; i < G_N_ELEMENTS(common); i++) {
        g_strv_builder_add(lists->env, common[i]);
        g_strv_builder_add(lists->container_env, common[i]);
    }
    add_path(lists->env, "VGPU_GOVERNOR_SLICES=", program);
    g_strv_builder_add(lists->container_env, "VGPU_GOVERNOR_SLICES=" SLICES_DIR);
    /* The directory, so that a restarted arbiter is found. */
    add_mount(door, dir, inside);
    add_mount(door, of->layer->library, of->layer->library);
    add_mount(door, member, member);
    add_mount(door, of->manifest, MANIFEST);
    if (door->cuda)
        add_cuda(of, slice, door, lists);
}

/* Of a slice's sockets in a container, which may have slices of two tenants with one name. */
static const char *socket_name(const Slice *slice)
{
    return *slice->name && !*slice->tenant ? slice->name : slice->uuid;
}

/*
 * Mesa takes one socket for each VkInstance. If several devices set a variable, the last one's
 * value is used.
 */
static void add_guarded(const DoorHost *of, const Slice *slice, Door *door, Lists *lists)
{
    g_autofree char *inside = g_strconcat(VTEST_DIR "/", socket_name(slice), ".sock", NULL);
    g_autofree char *socket = g_strconcat(GUARD_DIR "/", slice->uuid, "/" GUARD_SOCKET, NULL);
    g_autofree char *program = root_path(host_root(of->host), socket, NULL);

    g_strv_builder_add(lists->env, "VN_DEBUG=vtest");
    g_strv_builder_add(lists->container_env, "VN_DEBUG=vtest");
    add_path(lists->env, "VTEST_SOCKET_NAME=", program);
    add_path(lists->container_env, "VTEST_SOCKET_NAME=", inside);
    add_mount(door, socket, inside);
    /* "docker exec" and health checks have no variables of CDI: this layer sets them. */
    if (of->guarded) {
        add_mount(door, of->guarded->library, of->guarded->library);
        add_mount(door, of->guarded->manifest, MANIFESTS GUARDED_MANIFEST);
    }
}

/*
 * By the guard's second socket. A guard that was started before there was one does not have it, and
 * a container must not be refused for that.
 */
static gboolean has_cuda_by_guard(const DoorHost *of, const Slice *slice)
{
    HostRoot *root = host_root(of->host);
    g_autofree char *first = g_strconcat(GUARD_DIR "/", slice->uuid, "/" GUARD_SOCKET, NULL);
    g_autofree char *second = g_strconcat(GUARD_DIR "/", slice->uuid, "/" CUDA_SOCKET, NULL);

    if (!of->cuda || !of->cuda->remote || nvidia_minor(root, slice->gpu) < 0)
        return FALSE;
    return !root_has(root, first) || root_has(root, second);
}

/*
 * Everything is found by its path: programs of "docker exec" have none of the variables. Of several
 * slices in a container, the last one's socket has the path that programs try first.
 */
static void add_guarded_cuda(const DoorHost *of, const Slice *slice, Door *door, Lists *lists)
{
    g_autofree char *inside = g_strconcat(CUDA_SOCKETS_DIR "/", socket_name(slice), ".sock", NULL);
    g_autofree char *socket = g_strconcat(GUARD_DIR "/", slice->uuid, "/" CUDA_SOCKET, NULL);
    g_autofree char *program = root_path(host_root(of->host), socket, NULL);
    g_autofree char *libraries = cuda_remote_libraries(of->cuda);
    g_autoptr(GPtrArray) mounts = cuda_remote_mounts(of->cuda);

    door->cuda = HOOK_CUDA_REMOTE;
    add_mount(door, socket, inside);
    add_mount(door, socket, CUDA_SOCKET_INSIDE);
    add_path(lists->env, "VGPU_CUDA_SOCKET=", program);
    add_libraries(door, lists, mounts, libraries);
}

/* Without a render node a GPU for computing has no Vulkan, and its guard refuses who asks for it.
 */
static void add_all_guarded(const DoorHost *of, const Gpu *gpu, const Slice *slice, Door *door,
                            Lists *lists)
{
    g_autofree char *render = render_node(gpu);
    gboolean cuda = has_cuda_by_guard(of, slice);

    if (render || !cuda)
        add_guarded(of, slice, door, lists);
    if (cuda)
        add_guarded_cuda(of, slice, door, lists);
}

static void add_vgpu(const Slice *slice, Door *door, Lists *lists)
{
    door->mdev = mdev_path(slice->uuid);
    add_path(lists->env, "VGPU_MDEV=", door->mdev);
}

/* FALSE: there are none. */
static gboolean add_vgpu_nodes(const DoorHost *of, const Slice *slice, Lists *lists)
{
    g_autofree char *node = vfio_node(host_root(of->host), slice->uuid);

    g_strv_builder_add(lists->nodes, "/dev/vfio/vfio");
    if (node)
        g_strv_builder_add(lists->nodes, node);
    return node != NULL;
}

/* A GPU for computing alone has nodes of CUDA only. */
static gboolean add_native_nodes(const DoorHost *of, const Gpu *gpu, Door *door, Lists *lists)
{
    g_auto(GStrv) nodes = door_native_nodes(of, gpu);

    for (guint i = 0; nodes[i]; i++) {
        g_strv_builder_add(lists->nodes, nodes[i]);
        if (g_str_has_prefix(nodes[i], "/dev/nvidia"))
            door->cuda = HOOK_CUDA;
    }
    return nodes[0] != NULL;
}

/* A GPU without hardware has none. */
static gboolean add_nodes(const DoorHost *of, const Gpu *gpu, const Slice *slice, Door *door,
                          Lists *lists)
{
    if (slice->transport == SLICE_TRANSPORT_GUARDED)
        return TRUE;
    return (slice_is_vgpu(slice) ? add_vgpu_nodes(of, slice, lists)
                                 : add_native_nodes(of, gpu, door, lists)) ||
           gpu_name_is_soft(slice->gpu);
}

static gboolean is_usable(const DoorHost *of, const Gpu *gpu, const Slice *slice)
{
    return gpu && gpu->mode == GPU_MODE_SHARED && slice->present && !slice->reserved &&
           !slice->leaving && (slice->transport != SLICE_TRANSPORT_NATIVE || of->layer);
}

Door *door_find(const DoorHost *of, const Slice *slice)
{
    const Gpu *gpu = host_gpu(of->host, slice->gpu);
    g_autoptr(GStrvBuilder) env = g_strv_builder_new();
    g_autoptr(GStrvBuilder) container_env = g_strv_builder_new();
    g_autoptr(GStrvBuilder) nodes = g_strv_builder_new();
    Lists lists = {env, container_env, nodes};
    g_autoptr(Door) door = NULL;

    if (!is_usable(of, gpu, slice))
        return NULL;
    door = g_new0(Door, 1);
    door->mounts = g_ptr_array_new_with_free_func((GDestroyNotify)cuda_mount_free);
    if (!add_nodes(of, gpu, slice, door, &lists))
        return NULL;
    if (slice->transport == SLICE_TRANSPORT_NATIVE)
        add_native(of, slice, door, &lists);
    else if (slice->transport == SLICE_TRANSPORT_GUARDED)
        add_all_guarded(of, gpu, slice, door, &lists);
    else
        add_vgpu(slice, door, &lists);
    add_path(env, "VGPU_DEVICE=" DOOR_CDI_KIND "=", slice->uuid);
    door->env = g_strv_builder_end(env);
    door->container_env = g_strv_builder_end(container_env);
    door->nodes = g_strv_builder_end(nodes);
    return g_steal_pointer(&door);
}
