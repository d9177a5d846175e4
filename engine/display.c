// SPDX-License-Identifier: MIT
#include "display.h"

#include "engine.h"
#include "resource.h"

uint32_t display_cmd_get_info(struct engine *engine, const struct request *request G_GNUC_UNUSED)
{
    /* All zero: no display is enabled. */
    engine_response(engine, sizeof(struct virtio_gpu_resp_display_info));
    return VIRTIO_GPU_RESP_OK_DISPLAY_INFO;
}

uint32_t display_cmd_no_scanout(struct engine *engine G_GNUC_UNUSED,
                                const struct request *request G_GNUC_UNUSED)
{
    return VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID;
}

static uint32_t check_rect(struct engine *engine, uint32_t resource_id,
                           const struct virtio_gpu_rect *rect)
{
    const struct resource *resource = resource_find(engine, resource_id);

    if (!resource)
        return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
    if (resource->kind == RESOURCE_2D &&
        (rect->x > resource->width || rect->width > resource->width - rect->x ||
         rect->y > resource->height || rect->height > resource->height - rect->y))
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    return VIRTIO_GPU_RESP_OK_NODATA;
}

uint32_t display_cmd_flush(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_resource_flush *cmd = (const void *)request->data;

    return check_rect(engine, cmd->resource_id, &cmd->r);
}

uint32_t display_cmd_transfer(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_transfer_to_host_2d *cmd = (const void *)request->data;
    uint32_t type = check_rect(engine, cmd->resource_id, &cmd->r);

    if (type == VIRTIO_GPU_RESP_OK_NODATA && !resource_find(engine, cmd->resource_id)->iov.iov_base)
        return VIRTIO_GPU_RESP_ERR_UNSPEC;
    return type;
}
