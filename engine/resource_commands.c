// SPDX-License-Identifier: MIT
#include "resource_commands.h"

#include "backing.h"
#include "context.h"
#include "context_kind.h"
#include "engine.h"
#include "host_memory.h"
#include "resource.h"
#include "scanout.h"
#include "stuck.h"
#include "window.h"

#include <errno.h>
#include <virglrenderer.h>

#define BLOB_FLAGS                                                                                 \
    (VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE | VIRTIO_GPU_BLOB_FLAG_USE_SHAREABLE |                      \
     VIRTIO_GPU_BLOB_FLAG_USE_CROSS_DEVICE)

/* Larger sizes make no sense, and would overflow when rounded to pages. */
#define BLOB_MAX_SIZE (1ull << 46)

static void resource_release(struct resource *resource)
{
    struct engine *engine = resource->engine;

    if (engine->scanout.source == resource)
        scanout_off(engine);
    window_unmap(engine, resource);
    if (!resource_has_renderer(resource))
        return;
    context_forget_resource(engine, resource->id);
    virgl_renderer_resource_detach_iov((int)resource->id, NULL, NULL);
    virgl_renderer_resource_unref(resource->id);
}

void resource_release_all(struct engine *engine)
{
    GHashTableIter iter;
    void *resource;

    g_hash_table_iter_init(&iter, engine->resources);
    while (g_hash_table_iter_next(&iter, NULL, &resource)) {
        resource_release(resource);
        g_hash_table_iter_remove(&iter);
        stuck_watch_progress();
    }
}

static uint32_t check_blob(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_resource_create_blob *cmd = (const void *)request->data;
    uint32_t type = resource_check_new_id(engine, cmd->resource_id);

    if (type != VIRTIO_GPU_RESP_OK_NODATA)
        return type;
    if (cmd->size == 0 || cmd->size > BLOB_MAX_SIZE || (cmd->blob_flags & ~BLOB_FLAGS))
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;

    switch (cmd->blob_mem) {
    case VIRTIO_GPU_BLOB_MEM_GUEST:
        return cmd->nr_entries ? VIRTIO_GPU_RESP_OK_NODATA : VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    case VIRTIO_GPU_BLOB_MEM_HOST3D:
        if (cmd->nr_entries)
            return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
        break;
    case VIRTIO_GPU_BLOB_MEM_HOST3D_GUEST:
        if (cmd->nr_entries == 0)
            return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
        break;
    default:
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    }
    return context_alive(engine, cmd->hdr.ctx_id) ? VIRTIO_GPU_RESP_OK_NODATA
                                                  : VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
}

/* Blob id 0 requests plain shared memory, which nothing else counts. */
static bool account_shm(struct engine *engine, const struct context *maker,
                        struct resource *resource)
{
    if (!host_memory_has_room(engine, resource->size))
        return false;
    resource->shm = true;
    resource->maker = maker->serial;
    engine->shm_bytes += resource->size;
    return true;
}

/* Guest memory alone needs no context. */
static uint32_t create_blob(struct engine *engine,
                            const struct virtio_gpu_resource_create_blob *cmd,
                            struct resource *resource)
{
    const struct iovec *backing = resource->backing.iov.iov_base ? &resource->backing.iov : NULL;
    struct context *context = context_find(engine, cmd->hdr.ctx_id);
    int ret = 0;

    if (!resource->only_guest)
        ret = context->kind->blob(context, cmd, backing, resource);
    else if (engine->has_renderer)
        ret = resource_make_blob(cmd, backing);
    if (ret == 0)
        return VIRTIO_GPU_RESP_OK_NODATA;
    return ret == -ENOMEM ? VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY : VIRTIO_GPU_RESP_ERR_UNSPEC;
}

uint32_t resource_cmd_create_blob(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_resource_create_blob *cmd = (const void *)request->data;
    uint32_t type = check_blob(engine, request);
    struct resource *resource;

    if (type != VIRTIO_GPU_RESP_OK_NODATA)
        return type;

    resource = resource_new(engine, cmd->resource_id, RESOURCE_BLOB);
    resource->size = cmd->size;
    resource->blob_flags = cmd->blob_flags;
    resource->only_guest = cmd->blob_mem == VIRTIO_GPU_BLOB_MEM_GUEST;

    if (cmd->blob_mem != VIRTIO_GPU_BLOB_MEM_GUEST && cmd->blob_id == 0 &&
        !account_shm(engine, context_find(engine, cmd->hdr.ctx_id), resource))
        type = VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
    if (type == VIRTIO_GPU_RESP_OK_NODATA && cmd->nr_entries)
        type = backing_get(engine, &resource->backing, request, sizeof(*cmd), cmd->nr_entries);
    if (type == VIRTIO_GPU_RESP_OK_NODATA)
        type = create_blob(engine, cmd, resource);

    if (type != VIRTIO_GPU_RESP_OK_NODATA) {
        resource_free(resource);
        return type;
    }
    resource_add(resource);
    return VIRTIO_GPU_RESP_OK_NODATA;
}

uint32_t resource_cmd_unref(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_resource_unref *cmd = (const void *)request->data;
    struct resource *resource = resource_find(engine, cmd->resource_id);

    if (!resource)
        return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;

    resource_release(resource);
    g_hash_table_remove(engine->resources, GUINT_TO_POINTER(cmd->resource_id));
    return VIRTIO_GPU_RESP_OK_NODATA;
}

uint32_t resource_cmd_attach_backing(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_resource_attach_backing *cmd = (const void *)request->data;
    struct resource *resource = resource_find(engine, cmd->resource_id);

    if (!resource)
        return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
    if (resource->kind == RESOURCE_BLOB || resource->backing.iov.iov_base || cmd->nr_entries == 0)
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    return backing_get(engine, &resource->backing, request, sizeof(*cmd), cmd->nr_entries);
}

uint32_t resource_cmd_detach_backing(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_resource_detach_backing *cmd = (const void *)request->data;
    struct resource *resource = resource_find(engine, cmd->resource_id);

    if (!resource)
        return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
    /* A blob of guest memory consists only of guest memory. */
    if (resource->kind == RESOURCE_BLOB || !resource->backing.iov.iov_base)
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;

    backing_put(engine, &resource->backing);
    return VIRTIO_GPU_RESP_OK_NODATA;
}
