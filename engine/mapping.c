// SPDX-License-Identifier: MIT
#include "mapping.h"

#include "engine.h"
#include "resource.h"

#include <stddef.h>
#include <unistd.h>
#include <virglrenderer.h>

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

bool mapping_get(struct resource *resource)
{
    if (resource->map_users == 0 && !may_map(resource))
        return false;
    if (resource->map_users == 0 &&
        virgl_renderer_resource_map(resource->id, &resource->map_addr, &resource->map_size) != 0)
        return false;
    resource->map_users++;
    return true;
}

void mapping_put(struct resource *resource)
{
    if (--resource->map_users > 0)
        return;
    virgl_renderer_resource_unmap(resource->id);
    resource->map_addr = NULL;
    resource->map_size = 0;
}

void *mapping_get_shm(struct engine *engine, uint64_t maker, uint32_t resource_id, uint64_t *size)
{
    struct resource *resource = resource_find(engine, resource_id);

    if (!resource || !resource->shm || resource->maker != maker)
        return NULL;
    if (!mapping_get(resource))
        return NULL;
    *size = resource->map_size;
    return resource->map_addr;
}

void mapping_put_shm(struct engine *engine, uint32_t resource_id)
{
    mapping_put(resource_find(engine, resource_id));
}
