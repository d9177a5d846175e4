// SPDX-License-Identifier: MIT
#include "mapping.h"

#include "resource.h"

#include <stddef.h>
#include <virglrenderer.h>

bool mapping_get(struct resource *resource)
{
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
