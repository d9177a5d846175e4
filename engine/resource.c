// SPDX-License-Identifier: MIT
#include "resource.h"

#include "backing.h"
#include "engine.h"

struct resource *resource_find(struct engine *engine, uint32_t id)
{
    return g_hash_table_lookup(engine->resources, GUINT_TO_POINTER(id));
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
