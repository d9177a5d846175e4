// SPDX-License-Identifier: MIT
#include "transfer.h"

#include "context.h"
#include "engine.h"
#include "resource.h"

#include <virglrenderer.h>

static uint32_t check(struct engine *engine, const struct virtio_gpu_transfer_host_3d *cmd)
{
    const struct resource *resource = resource_find(engine, cmd->resource_id);

    if (!resource)
        return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
    if (resource->kind == RESOURCE_2D)
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    if (cmd->hdr.ctx_id && !context_alive(engine, cmd->hdr.ctx_id))
        return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
    return VIRTIO_GPU_RESP_OK_NODATA;
}

/* struct virgl_box has no definition in the header: it is virtio's box. */
static struct virgl_box *virgl_box(struct virtio_gpu_box *box)
{
    return (struct virgl_box *)box;
}

uint32_t transfer_cmd_to_host_3d(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_transfer_host_3d *cmd = (const void *)request->data;
    struct virtio_gpu_box box = cmd->box;
    uint32_t type = check(engine, cmd);

    if (type != VIRTIO_GPU_RESP_OK_NODATA)
        return type;
    if (virgl_renderer_transfer_write_iov(cmd->resource_id, cmd->hdr.ctx_id, (int)cmd->level,
                                          cmd->stride, cmd->layer_stride, virgl_box(&box),
                                          cmd->offset, NULL, 0) != 0)
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    return VIRTIO_GPU_RESP_OK_NODATA;
}

uint32_t transfer_cmd_from_host_3d(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_transfer_host_3d *cmd = (const void *)request->data;
    struct virtio_gpu_box box = cmd->box;
    uint32_t type = check(engine, cmd);

    if (type != VIRTIO_GPU_RESP_OK_NODATA)
        return type;
    if (virgl_renderer_transfer_read_iov(cmd->resource_id, cmd->hdr.ctx_id, cmd->level, cmd->stride,
                                         cmd->layer_stride, virgl_box(&box), cmd->offset, NULL,
                                         0) != 0)
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    return VIRTIO_GPU_RESP_OK_NODATA;
}
