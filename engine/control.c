// SPDX-License-Identifier: MIT
#include "control.h"

#include "answer.h"
#include "capset.h"
#include "context.h"
#include "display.h"
#include "engine.h"
#include "image.h"
#include "resource_commands.h"
#include "window.h"

#include <string.h>

/**
 * struct control_command
 * @size: of the fixed part; a shorter request is refused
 * @resource: offset of a resource's id in it; 0: none
 */
struct control_command {
    uint32_t type;
    uint32_t size;
    uint32_t resource;
    uint32_t (*handle)(struct engine *engine, const struct request *request);
};

#define COMMAND(NAME, struct_name, handler)                                                        \
    {VIRTIO_GPU_CMD_##NAME, sizeof(struct virtio_gpu_##struct_name), 0, handler}
#define COMMAND_OF_RESOURCE(NAME, struct_name, handler)                                            \
    {VIRTIO_GPU_CMD_##NAME, sizeof(struct virtio_gpu_##struct_name),                               \
     offsetof(struct virtio_gpu_##struct_name, resource_id), handler}

/* Frequent ones first. */
static const struct control_command commands[] = {
    COMMAND(SUBMIT_3D, cmd_submit, context_cmd_submit),
    COMMAND_OF_RESOURCE(RESOURCE_CREATE_BLOB, resource_create_blob, resource_cmd_create_blob),
    COMMAND_OF_RESOURCE(RESOURCE_MAP_BLOB, resource_map_blob, window_cmd_map),
    COMMAND_OF_RESOURCE(RESOURCE_UNMAP_BLOB, resource_unmap_blob, window_cmd_unmap),
    COMMAND_OF_RESOURCE(RESOURCE_UNREF, resource_unref, resource_cmd_unref),
    COMMAND_OF_RESOURCE(CTX_ATTACH_RESOURCE, ctx_resource, context_cmd_change_resource),
    COMMAND_OF_RESOURCE(CTX_DETACH_RESOURCE, ctx_resource, context_cmd_change_resource),
    COMMAND(CTX_CREATE, ctx_create, context_cmd_create),
    COMMAND(CTX_DESTROY, ctx_destroy, context_cmd_destroy),
    COMMAND_OF_RESOURCE(RESOURCE_ATTACH_BACKING, resource_attach_backing,
                        resource_cmd_attach_backing),
    COMMAND_OF_RESOURCE(RESOURCE_DETACH_BACKING, resource_detach_backing,
                        resource_cmd_detach_backing),
    COMMAND(GET_CAPSET_INFO, get_capset_info, capset_cmd_get_info),
    COMMAND(GET_CAPSET, get_capset, capset_cmd_get),
    COMMAND_OF_RESOURCE(RESOURCE_CREATE_2D, resource_create_2d, image_cmd_create),
    COMMAND_OF_RESOURCE(TRANSFER_TO_HOST_2D, transfer_to_host_2d, image_cmd_transfer),
    COMMAND_OF_RESOURCE(RESOURCE_FLUSH, resource_flush, display_cmd_flush),
    COMMAND(GET_DISPLAY_INFO, ctrl_hdr, display_cmd_get_info),
    COMMAND(GET_EDID, cmd_get_edid, display_cmd_get_edid),
    COMMAND_OF_RESOURCE(SET_SCANOUT, set_scanout, display_cmd_set_scanout),
    COMMAND_OF_RESOURCE(SET_SCANOUT_BLOB, set_scanout_blob, display_cmd_set_scanout_blob),
};

static const struct control_command *find_command(const struct request *request)
{
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (commands[i].type == request->hdr.type)
            return &commands[i];
    }
    return NULL;
}

uint32_t control_resource_of(const struct request *request)
{
    const struct control_command *command = find_command(request);
    uint32_t id = 0;

    if (command && command->resource && request->size >= command->size)
        memcpy(&id, request->data + command->resource, sizeof(id));
    return id;
}

uint32_t control_execute(struct engine *engine, const struct request *request)
{
    const struct control_command *command = find_command(request);

    if (request->size < sizeof(request->hdr))
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    if (!command)
        return VIRTIO_GPU_RESP_ERR_UNSPEC;
    if (request->size < command->size)
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    return command->handle(engine, request);
}

void control_answer(struct engine *engine, const struct request *request, uint32_t type)
{
    uint32_t fence_flags = VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX;
    struct virtio_gpu_ctrl_hdr *response;

    if (type == VIRTIO_GPU_RESP_OK_NODATA || type >= VIRTIO_GPU_RESP_ERR_UNSPEC)
        answer_begin(engine, sizeof(*response));

    response = (struct virtio_gpu_ctrl_hdr *)engine->response->data;
    response->type = type;
    if (request->hdr.flags & VIRTIO_GPU_FLAG_FENCE) {
        response->flags = request->hdr.flags & fence_flags;
        response->fence_id = request->hdr.fence_id;
        response->ctx_id = request->hdr.ctx_id;
        response->ring_idx = request->hdr.ring_idx;
    }
    answer_send(engine, request);
}

void control_process(struct engine *engine, const struct request *request)
{
    control_answer(engine, request, control_execute(engine, request));
}
