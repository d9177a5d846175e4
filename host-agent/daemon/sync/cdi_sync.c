/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/sync/cdi_sync.h"

#include <string.h>

#include "host-agent/daemon/containers/cdi_spec.h"
#include "host-agent/daemon/host/authority.h"
#include "lib/pci.h"

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

static gboolean handle_get(VgpuManager *interface, GDBusMethodInvocation *invocation, void *data)
{
    (void)interface;
    authority_ask(invocation, ACTION_SEE, get_allowed, data);
    return TRUE;
}

CdiSync *cdi_sync_new(Host *host, const Slices *slices)
{
    CdiSync *link = g_new0(CdiSync, 1);

    link->host = host;
    link->slices = slices;
    g_signal_connect(host_manager(host), "handle-get-cdi", G_CALLBACK(handle_get), link);
    return link;
}

void cdi_sync_free(CdiSync *link)
{
    g_signal_handlers_disconnect_by_data(host_manager(link->host), link);
    g_free(link->text);
    g_free(link);
}
