// SPDX-License-Identifier: MIT
#include "submit.h"

#include "context.h"
#include "context_kind.h"
#include "engine.h"
#include "guest_log.h"

#include <errno.h>

static uint32_t submit(struct engine *engine, struct context *context, uint32_t *commands,
                       size_t words)
{
    switch (context->kind->submit(engine, context, commands, words)) {
    case 0:
        return VIRTIO_GPU_RESP_OK_NODATA;
    case -EMSGSIZE:
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    case -EMFILE:
        guest_warning("context %u: it makes more than %u rings, and is ended", context->id,
                      VENUS_RINGS_MAX);
        context_end(engine, context);
        return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
    default:
        context_lost(engine, context);
        return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
    }
}

uint32_t submit_cmd(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_cmd_submit *cmd = (const void *)request->data;
    struct context *context = context_find(engine, cmd->hdr.ctx_id);
    uint32_t *commands = (void *)(request->data + sizeof(*cmd)); /* a copy of the engine's own */

    if (!context || context->lost)
        return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
    if (cmd->size > request->size - sizeof(*cmd) || cmd->size % sizeof(uint32_t))
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    if (cmd->size == 0) /* an execbuffer that exists only for its fence */
        return VIRTIO_GPU_RESP_OK_NODATA;
    if (!context_has_renderer(context))
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    return submit(engine, context, commands, cmd->size / sizeof(*commands));
}
