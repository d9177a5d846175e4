// SPDX-License-Identifier: MIT
#include "resource.h"

#include "backing.h"
#include "engine.h"

#include <virglrenderer.h>

struct resource *resource_find(struct engine *engine, uint32_t id)
{
    return g_hash_table_lookup(engine->resources, GUINT_TO_POINTER(id));
}

bool resource_has_renderer(const struct resource *resource)
{
    return resource->kind == RESOURCE_BLOB && !resource->lost;
}

uint32_t resource_check_new_id(struct engine *engine, uint32_t id)
{
    if (id == 0 || resource_find(engine, id))
        return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
    if (g_hash_table_size(engine->resources) >= ENGINE_MAX_RESOURCES)
        return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
    return VIRTIO_GPU_RESP_OK_NODATA;
}

struct resource *resource_new(struct engine *engine, uint32_t id, enum resource_kind kind)
{
    struct resource *resource = g_new0(struct resource, 1);

    resource->engine = engine;
    resource->id = id;
    resource->kind = kind;
    return resource;
}

void resource_add(struct resource *resource)
{
    g_hash_table_insert(resource->engine->resources, GUINT_TO_POINTER(resource->id), resource);
}

int resource_make_blob(const struct virtio_gpu_resource_create_blob *cmd,
                       const struct iovec *backing)
{
    const struct virgl_renderer_resource_create_blob_args args = {
        .res_handle = cmd->resource_id,
        .ctx_id = cmd->hdr.ctx_id,
        .blob_mem = cmd->blob_mem,
        .blob_flags = cmd->blob_flags,
        .blob_id = cmd->blob_id,
        .size = cmd->size,
        .iovecs = backing,
        .num_iovs = backing ? 1 : 0,
    };

    return virgl_renderer_resource_create_blob(&args);
}

void resource_free(void *data)
{
    struct resource *resource = data;

    backing_put(resource->engine, &resource->backing);
    resource->engine->image_bytes -= resource->image_size;
    g_free(resource->image);
    if (resource->shm)
        resource->engine->shm_bytes -= resource->size;
    g_free(resource);
}
