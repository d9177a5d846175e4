// SPDX-License-Identifier: MIT
#include "image.h"

#include "engine.h"
#include "pixels.h"
#include "resource.h"

#include <string.h>

static uint32_t image_new(struct engine *engine, struct resource *resource, uint32_t virtio_format)
{
    uint64_t size = (uint64_t)resource->width * resource->height * PIXEL_BYTES;

    resource->format = pixel_format_find(virtio_format);
    if (!resource->format || resource->width > IMAGE_MAX_SIDE || resource->height > IMAGE_MAX_SIDE)
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    if (size > IMAGE_MAX_BYTES - engine->image_bytes)
        return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
    resource->image = g_try_malloc0(size);
    if (!resource->image)
        return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
    resource->image_size = size;
    engine->image_bytes += size;
    return VIRTIO_GPU_RESP_OK_NODATA;
}

uint32_t image_cmd_create(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_resource_create_2d *cmd = (const void *)request->data;
    uint32_t type = resource_check_new_id(engine, cmd->resource_id);
    struct resource *resource;

    if (type != VIRTIO_GPU_RESP_OK_NODATA)
        return type;
    if (cmd->width == 0 || cmd->height == 0)
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;

    resource = resource_new(engine, cmd->resource_id, RESOURCE_2D);
    resource->width = cmd->width;
    resource->height = cmd->height;
    if (engine->info.num_scanouts)
        type = image_new(engine, resource, cmd->format);
    if (type != VIRTIO_GPU_RESP_OK_NODATA) {
        resource_free(resource);
        return type;
    }
    resource_add(resource);
    return VIRTIO_GPU_RESP_OK_NODATA;
}

bool image_has_rect(const struct resource *resource, const struct virtio_gpu_rect *rect)
{
    return rect->x <= resource->width && rect->width <= resource->width - rect->x &&
           rect->y <= resource->height && rect->height <= resource->height - rect->y;
}

/* Rows have the same distance in guest memory as in the image; @offset is the first one's. */
static bool copy_rows(struct resource *resource, const struct virtio_gpu_rect *rect,
                      uint64_t offset)
{
    const uint8_t *source = resource->backing.iov.iov_base;
    uint64_t stride = (uint64_t)resource->width * PIXEL_BYTES;
    uint64_t bytes = (uint64_t)rect->width * PIXEL_BYTES, span;
    uint8_t *image = resource->image;

    if (rect->width == 0 || rect->height == 0)
        return true;
    span = (rect->height - 1) * stride + bytes;
    if (span > resource->backing.iov.iov_len || offset > resource->backing.iov.iov_len - span)
        return false;

    image += rect->y * stride + (uint64_t)rect->x * PIXEL_BYTES;
    source += offset;
    for (uint32_t row = 0; row < rect->height; row++)
        memcpy(image + row * stride, source + row * stride, bytes);
    return true;
}

uint32_t image_cmd_transfer(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_transfer_to_host_2d *cmd = (const void *)request->data;
    struct resource *resource = resource_find(engine, cmd->resource_id);
    bool ok;

    if (!resource)
        return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
    if (resource->kind == RESOURCE_2D && !image_has_rect(resource, &cmd->r))
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    if (!resource->backing.iov.iov_base)
        return VIRTIO_GPU_RESP_ERR_UNSPEC;
    if (!resource->image)
        return VIRTIO_GPU_RESP_OK_NODATA;
    /* It may be shown. */
    painter_enter(&engine->scanout.painter);
    ok = copy_rows(resource, &cmd->r, cmd->offset);
    painter_leave(&engine->scanout.painter);
    return ok ? VIRTIO_GPU_RESP_OK_NODATA : VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
}
