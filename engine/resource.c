// SPDX-License-Identifier: MIT
#include "resource.h"

#include "backing.h"
#include "engine.h"
#include "host_memory.h"

#include <unistd.h>
#include <virglrenderer.h>

struct resource *resource_find(struct engine *engine, uint32_t id)
{
    return g_hash_table_lookup(engine->resources, GUINT_TO_POINTER(id));
}

bool resource_has_renderer(const struct resource *resource)
{
    return resource->kind == RESOURCE_BLOB && !resource->lost && !resource->memory &&
           !resource->lent_at && resource->engine->has_renderer;
}

struct resource *resource_find_lent(struct engine *engine, uint64_t maker, uint64_t lent_at)
{
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, engine->resources);
    while (lent_at && g_hash_table_iter_next(&iter, NULL, &value)) {
        struct resource *resource = value;

        if (resource->maker == maker && resource->lent_at == lent_at)
            return resource;
    }
    return NULL;
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

/* False if virglrenderer would need Vulkan in this process to map it. */
static bool may_map(const struct resource *resource)
{
    uint32_t type;
    int fd;

    if (resource->shm || resource->engine->opaque ||
        virgl_renderer_resource_export_blob(resource->id, &type, &fd) != 0)
        return true;
    close(fd);
    return type != VIRGL_RENDERER_BLOB_FD_TYPE_OPAQUE;
}

bool resource_map(struct resource *resource)
{
    struct engine *engine = resource->engine;

    if (resource->memory) {
        resource->map_addr = resource->memory->at;
        resource->map_size = resource->memory->bytes;
    } else if (resource->map_users == 0) {
        if (engine->mappings >= ENGINE_MAX_MAPPINGS || !may_map(resource) ||
            virgl_renderer_resource_map(resource->id, &resource->map_addr, &resource->map_size) !=
                0)
            return false;
        engine->mappings++;
    }
    resource->map_users++;
    return true;
}

void resource_unmap(struct resource *resource)
{
    if (--resource->map_users > 0)
        return;
    if (!resource->memory) {
        virgl_renderer_resource_unmap(resource->id);
        resource->engine->mappings--;
    }
    resource->map_addr = NULL;
    resource->map_size = 0;
}

void *resource_map_shm(struct engine *engine, uint64_t maker, uint32_t resource_id, uint64_t *size)
{
    struct resource *resource = resource_find(engine, resource_id);

    if (!resource || !resource->shm || resource->maker != maker)
        return NULL;
    if (!resource_map(resource))
        return NULL;
    *size = resource->map_size;
    return resource->map_addr;
}

void resource_free(void *data)
{
    struct resource *resource = data;

    backing_put(resource->engine, &resource->backing);
    host_memory_leave(resource->memory);
    resource->engine->image_bytes -= resource->image_size;
    g_free(resource->image);
    if (resource->shm)
        resource->engine->shm_bytes -= resource->size;
    g_free(resource);
}
