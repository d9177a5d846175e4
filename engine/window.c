// SPDX-License-Identifier: MIT
#include "window.h"

#include "answer.h"
#include "engine.h"
#include "guest_log.h"
#include "resource.h"

#include <errno.h>
#include <virglrenderer.h>

static uint64_t page_round_up(uint64_t size)
{
    return (size + ENGINE_PAGE_SIZE - 1) & ~(uint64_t)(ENGINE_PAGE_SIZE - 1);
}

static uint32_t check_map(struct engine *engine, const struct resource *resource, uint64_t offset)
{
    uint64_t window = engine->info.window_bytes;

    if (!resource)
        return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
    if (resource->kind != RESOURCE_BLOB || resource->lost || resource->mapped ||
        resource->backing.iov.iov_base ||
        !(resource->blob_flags & VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE))
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    if (offset % ENGINE_PAGE_SIZE || offset > window ||
        page_round_up(resource->size) > window - offset)
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    return VIRTIO_GPU_RESP_OK_NODATA;
}

static uint32_t publish_mapping(struct engine *engine, struct resource *resource, uint64_t epoch,
                                uint64_t offset, void *addr, uint64_t size)
{
    struct vgpu_transport *transport = engine->transport;
    int ret;

    if ((uintptr_t)addr % ENGINE_PAGE_SIZE) {
        guest_warning("resource %u: the Vulkan driver's mapping does not begin on a page, "
                      "so it cannot be shown to the guest",
                      resource->id);
        return VIRTIO_GPU_RESP_ERR_UNSPEC;
    }
    ret = transport->ops->publish(transport, epoch, offset, size, addr);
    if (ret == 0)
        return VIRTIO_GPU_RESP_OK_NODATA;
    if (ret == -ESTALE)
        return VIRTIO_GPU_RESP_ERR_UNSPEC;

    guest_warning("resource %u: the driver refused to publish %" G_GUINT64_FORMAT
                  " bytes at window offset 0x%" G_GINT64_MODIFIER "x: %s",
                  resource->id, size, offset, g_strerror(-ret));
    if (ret == -EEXIST || ret == -EINVAL)
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    return ret == -ENOSPC || ret == -ENOMEM ? VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY
                                            : VIRTIO_GPU_RESP_ERR_UNSPEC;
}

uint32_t window_cmd_map(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_resource_map_blob *cmd = (const void *)request->data;
    struct resource *resource = resource_find(engine, cmd->resource_id);
    uint32_t type = check_map(engine, resource, cmd->offset);
    struct virtio_gpu_resp_map_info *response;
    uint32_t map_info = VIRTIO_GPU_MAP_CACHE_CACHED;
    uint64_t size;

    if (type != VIRTIO_GPU_RESP_OK_NODATA)
        return type;
    if (!resource_map(resource))
        return VIRTIO_GPU_RESP_ERR_UNSPEC;

    /*
     * An imported Vulkan allocation may be larger than the blob, and only the blob's range is
     * reserved.
     */
    size = MIN(page_round_up(resource->map_size), page_round_up(resource->size));
    type = publish_mapping(engine, resource, request->epoch, cmd->offset, resource->map_addr, size);
    if (type != VIRTIO_GPU_RESP_OK_NODATA) {
        resource_unmap(resource);
        return type;
    }
    resource->mapped = true;
    resource->window_offset = cmd->offset;
    resource->window_size = size;

    if (!resource->memory)
        virgl_renderer_resource_get_map_info(resource->id, &map_info);
    response = answer_begin(engine, sizeof(*response));
    response->map_info = map_info & VIRTIO_GPU_MAP_CACHE_MASK;
    return VIRTIO_GPU_RESP_OK_MAP_INFO;
}

void window_unmap(struct engine *engine, struct resource *resource)
{
    struct vgpu_transport *transport = engine->transport;

    if (!resource->mapped)
        return;

    transport->ops->unpublish(transport, engine->epoch, resource->window_offset,
                              resource->window_size);
    resource_unmap(resource);
    resource->mapped = false;
}

uint32_t window_cmd_unmap(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_resource_unmap_blob *cmd = (const void *)request->data;
    struct resource *resource = resource_find(engine, cmd->resource_id);

    if (!resource)
        return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
    /* Linux unmaps it even if its mapping failed; there is nothing to tell it then. */
    window_unmap(engine, resource);
    return VIRTIO_GPU_RESP_OK_NODATA;
}
