// SPDX-License-Identifier: MIT
#include "control.h"

#include "capset.h"
#include "context.h"
#include "display.h"
#include "engine.h"
#include "image.h"
#include "resource.h"
#include "transfer.h"
#include "window.h"

struct control_command {
    uint32_t type;
    uint32_t size; /* of the fixed part; a request of less is refused */
    uint32_t (*handle)(struct engine *engine, const struct request *request);
};

#define COMMAND(NAME, struct_name, handler)                                                        \
    {                                                                                              \
        VIRTIO_GPU_CMD_##NAME, sizeof(struct virtio_gpu_##struct_name), handler                    \
    }

/* The frequent ones first. */
static const struct control_command commands[] = {
    COMMAND(SUBMIT_3D, cmd_submit, context_cmd_submit),
    COMMAND(RESOURCE_CREATE_BLOB, resource_create_blob, resource_cmd_create_blob),
    COMMAND(RESOURCE_MAP_BLOB, resource_map_blob, window_cmd_map),
    COMMAND(RESOURCE_UNMAP_BLOB, resource_unmap_blob, window_cmd_unmap),
    COMMAND(RESOURCE_UNREF, resource_unref, resource_cmd_unref),
    COMMAND(CTX_ATTACH_RESOURCE, ctx_resource, context_cmd_attach),
    COMMAND(CTX_DETACH_RESOURCE, ctx_resource, context_cmd_detach),
    COMMAND(TRANSFER_TO_HOST_3D, transfer_host_3d, transfer_cmd_to_host_3d),
    COMMAND(TRANSFER_FROM_HOST_3D, transfer_host_3d, transfer_cmd_from_host_3d),
    COMMAND(CTX_CREATE, ctx_create, context_cmd_create),
    COMMAND(CTX_DESTROY, ctx_destroy, context_cmd_destroy),
    COMMAND(RESOURCE_CREATE_3D, resource_create_3d, resource_cmd_create_3d),
    COMMAND(RESOURCE_ATTACH_BACKING, resource_attach_backing, resource_cmd_attach_backing),
    COMMAND(RESOURCE_DETACH_BACKING, resource_detach_backing, resource_cmd_detach_backing),
    COMMAND(GET_CAPSET_INFO, get_capset_info, capset_cmd_get_info),
    COMMAND(GET_CAPSET, get_capset, capset_cmd_get),
    COMMAND(RESOURCE_CREATE_2D, resource_create_2d, image_cmd_create),
    COMMAND(TRANSFER_TO_HOST_2D, transfer_to_host_2d, image_cmd_transfer),
    COMMAND(RESOURCE_FLUSH, resource_flush, display_cmd_flush),
    COMMAND(GET_DISPLAY_INFO, ctrl_hdr, display_cmd_get_info),
    COMMAND(GET_EDID, cmd_get_edid, display_cmd_get_edid),
    COMMAND(SET_SCANOUT, set_scanout, display_cmd_set_scanout),
    COMMAND(SET_SCANOUT_BLOB, set_scanout_blob, display_cmd_set_scanout_blob),
};

static uint32_t dispatch(struct engine *engine, const struct request *request)
{
    if (request->size < sizeof(request->hdr))
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;

    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (commands[i].type != request->hdr.type)
            continue;
        if (request->size < commands[i].size)
            return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
        return commands[i].handle(engine, request);
    }
    return VIRTIO_GPU_RESP_ERR_UNSPEC;
}

static void respond(struct engine *engine, const struct request *request, uint32_t type)
{
    uint32_t fence_flags = VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX;
    struct virtio_gpu_ctrl_hdr *response;

    if (type >= VIRTIO_GPU_RESP_ERR_UNSPEC)
        engine_response(engine, sizeof(*response));

    response = (struct virtio_gpu_ctrl_hdr *)engine->response->data;
    response->type = type;
    if (request->hdr.flags & VIRTIO_GPU_FLAG_FENCE) {
        response->flags = request->hdr.flags & fence_flags;
        response->fence_id = request->hdr.fence_id;
        response->ctx_id = request->hdr.ctx_id;
        response->ring_idx = request->hdr.ring_idx;
    }
    fence_respond(engine, request);
}

void control_process(struct engine *engine, const struct request *request)
{
    engine_response(engine, sizeof(struct virtio_gpu_ctrl_hdr));
    respond(engine, request, dispatch(engine, request));
}

void control_reject(struct engine *engine, const struct request *request, uint32_t type)
{
    respond(engine, request, type);
}
