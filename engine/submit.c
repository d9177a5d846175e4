// SPDX-License-Identifier: MIT
#include "submit.h"

#include "context.h"
#include "engine.h"
#include "hold.h"

#include <virglrenderer.h>

uint32_t submit_cmd(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_cmd_submit *cmd = (const void *)request->data;
    struct context *context = context_find(engine, cmd->hdr.ctx_id);
    uint32_t *commands = (void *)(request->data + sizeof(*cmd)); /* a copy of the engine's own */
    size_t words = cmd->size / sizeof(*commands);
    int ret;

    if (!context || context->lost)
        return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
    if (cmd->size > request->size - sizeof(*cmd) || cmd->size % sizeof(uint32_t))
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    if (cmd->size == 0) /* an execbuffer that exists only for its fence */
        return VIRTIO_GPU_RESP_OK_NODATA;
    if (!context_has_renderer(context))
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;

    if (context->capset == VIRTIO_GPU_CAPSET_VENUS)
        venus_rings_patch(commands, words);
    ret = virgl_renderer_submit_cmd(commands, (int)context->id, (int)words);
    if (context->capset != VIRTIO_GPU_CAPSET_VENUS)
        return ret == 0 ? VIRTIO_GPU_RESP_OK_NODATA : VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    if (ret != 0) {
        context_lost(engine, context);
        return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
    }
    venus_rings_learn(&context->rings, commands, words);
    hold_submitted(engine, context, commands, words);
    return VIRTIO_GPU_RESP_OK_NODATA;
}
