// SPDX-License-Identifier: MIT
#include "display.h"

#include "answer.h"
#include "engine.h"
#include "image.h"
#include "monitor.h"
#include "pixels.h"
#include "resource.h"
#include "scanout.h"

#include <string.h>

/* The VMM's current settings of the monitor. False: there is no display. */
static bool read_display(struct engine *engine, struct vgpu_display *display)
{
    return engine->info.num_scanouts > 0 &&
           engine->transport->ops->display(engine->transport, display) == 0 &&
           display->edid_size <= sizeof(display->edid);
}

uint32_t display_cmd_get_info(struct engine *engine, const struct request *request G_GNUC_UNUSED)
{
    struct virtio_gpu_resp_display_info *response = answer_begin(engine, sizeof(*response));
    struct vgpu_display display;
    uint32_t width, height;

    if (read_display(engine, &display) && (display.state & VGPU_DISPLAY_CONNECTED)) {
        width = display.max_width;
        height = display.max_height;
        monitor_preferred(display.edid, display.edid_size, &width, &height);
        response->pmodes[0].enabled = 1;
        response->pmodes[0].r.width = width;
        response->pmodes[0].r.height = height;
    }
    return VIRTIO_GPU_RESP_OK_DISPLAY_INFO;
}

uint32_t display_cmd_get_edid(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_cmd_get_edid *cmd = (const void *)request->data;
    struct virtio_gpu_resp_edid *response;
    struct vgpu_display display;

    if (cmd->scanout >= engine->info.num_scanouts)
        return VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID;
    if (!read_display(engine, &display))
        return VIRTIO_GPU_RESP_ERR_UNSPEC;
    response = answer_begin(engine, sizeof(*response));
    if (display.edid_size) {
        memcpy(response->edid, display.edid, display.edid_size);
        response->size = display.edid_size;
    } else {
        monitor_edid(response->edid, MONITOR_WIDTH, MONITOR_HEIGHT);
        response->size = MONITOR_EDID_SIZE;
    }
    return VIRTIO_GPU_RESP_OK_EDID;
}

uint32_t display_cmd_set_scanout(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_set_scanout *cmd = (const void *)request->data;
    struct resource *resource;
    struct surface surface;

    if (cmd->scanout_id >= engine->info.num_scanouts)
        return VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID;
    if (cmd->resource_id == 0) {
        scanout_off(engine);
        return VIRTIO_GPU_RESP_OK_NODATA;
    }
    resource = resource_find(engine, cmd->resource_id);
    if (!resource || !resource->image)
        return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
    surface = (struct surface){
        .width = resource->width,
        .height = resource->height,
        .stride = resource->width * PIXEL_BYTES,
        .format = resource->format,
    };
    return scanout_show(engine, resource, &surface, &cmd->r);
}

uint32_t display_cmd_set_scanout_blob(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_set_scanout_blob *cmd = (const void *)request->data;
    struct surface surface = {
        .width = cmd->width,
        .height = cmd->height,
        .stride = cmd->strides[0],
        .offset = cmd->offsets[0],
        .format = pixel_format_find(cmd->format),
    };
    struct resource *resource;

    if (cmd->scanout_id >= engine->info.num_scanouts)
        return VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID;
    if (cmd->resource_id == 0) {
        scanout_off(engine);
        return VIRTIO_GPU_RESP_OK_NODATA;
    }
    resource = resource_find(engine, cmd->resource_id);
    if (!resource || resource->kind != RESOURCE_BLOB)
        return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
    if (!surface.format || !surface.width || !surface.height)
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    return scanout_show(engine, resource, &surface, &cmd->r);
}

uint32_t display_cmd_flush(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_resource_flush *cmd = (const void *)request->data;
    const struct resource *resource = resource_find(engine, cmd->resource_id);

    if (!resource)
        return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
    if (resource->kind == RESOURCE_2D && !image_has_rect(resource, &cmd->r))
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    scanout_flush(engine, resource, &cmd->r);
    return VIRTIO_GPU_RESP_OK_NODATA;
}

void display_cursor_command(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_update_cursor *cmd = (const void *)request->data;

    if (request->size < sizeof(*cmd) || cmd->pos.scanout_id >= engine->info.num_scanouts)
        return;
    if (cmd->hdr.type == VIRTIO_GPU_CMD_UPDATE_CURSOR)
        scanout_set_cursor(engine, resource_find(engine, cmd->resource_id));
    else if (cmd->hdr.type != VIRTIO_GPU_CMD_MOVE_CURSOR)
        return;
    scanout_move_cursor(engine, (int32_t)cmd->pos.x, (int32_t)cmd->pos.y);
}
