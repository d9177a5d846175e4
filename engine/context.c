// SPDX-License-Identifier: MIT
#include "context.h"

#include "context_kind.h"
#include "engine.h"
#include "guest_log.h"
#include "resource.h"
#include "stuck.h"

#include <errno.h>

bool context_has_renderer(const struct context *context)
{
    return context && context->kind && !context->lost;
}

struct context *context_find(struct engine *engine, uint32_t ctx_id)
{
    return g_hash_table_lookup(engine->contexts, GUINT_TO_POINTER(ctx_id));
}

bool context_alive(struct engine *engine, uint32_t ctx_id)
{
    return context_has_renderer(context_find(engine, ctx_id));
}

/*
 * In this order: virglrenderer ends the worker, and the fences that it then reports are ignored.
 * Nothing that the worker was to answer will be.
 */
static void context_end_worker(struct engine *engine, struct context *context)
{
    if (context->held_since) /* what is parked fails now */
        fence_release(&engine->fences);
    lifelines_remove(&engine->lifelines, context->id);
    context->kind->end(context);
    context->credits = (struct credits){0};
    context->held_since = 0;
    context->probe = 0;
}

/*
 * virglrenderer's context is destroyed at once: its fence thread would spin on the closed socket of
 * a dead worker.
 */
void context_end(struct engine *engine, struct context *context)
{
    if (!context_has_renderer(context))
        return;
    context->kind->fail(engine, context);
    context->lost = true;
    context->lost_since = g_get_monotonic_time();
    context_end_worker(engine, context);
    context->withholds = context->kind->withholds;
    if (!context->withholds || !fence_withhold(&engine->fences, context->id))
        context_give_answers(engine, context);
}

void context_give_answers(struct engine *engine, struct context *context)
{
    context->withholds = false;
    fence_fail_context(&engine->fences, context->id);
}

void context_fail_all_rings(struct engine *engine)
{
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, engine->contexts);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct context *context = value;

        if (context->kind)
            context->kind->fail(engine, context);
    }
}

void context_lost(struct engine *engine, struct context *context)
{
    if (!context_has_renderer(context))
        return;
    if (!context->dismissed)
        guest_warning("context %u: its worker has ended; its commands fail until the guest "
                      "destroys it",
                      context->id);
    context_end(engine, context);
}

int context_create_fence(struct engine *engine, uint32_t ctx_id, uint32_t ring_idx,
                         uint64_t fence_id)
{
    struct context *context = context_find(engine, ctx_id);
    int ret;

    if (!context_has_renderer(context))
        return -ENOENT;

    ret = context->kind->fence(context, ring_idx, fence_id);
    if (ret != -EPIPE)
        return ret;
    context_lost(engine, context);
    return -ENOENT;
}

static bool capset_offered(const struct engine *engine, uint32_t capset)
{
    for (uint32_t i = 0; i < engine->num_capsets; i++) {
        if (engine->capsets[i].id == capset)
            return true;
    }
    return false;
}

static struct context *context_new(struct engine *engine, uint32_t ctx_id,
                                   const struct context_kind *kind)
{
    struct context *context = g_new0(struct context, 1);

    context->id = ctx_id;
    context->serial = ++engine->contexts_made;
    context->kind = kind;
    context->resources = g_hash_table_new(NULL, NULL);
    return context;
}

void context_free(void *data)
{
    struct context *context = data;

    venus_rings_clear(&context->rings);
    g_hash_table_destroy(context->resources);
    g_free(context);
}

uint32_t context_cmd_create(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_ctx_create *cmd = (const void *)request->data;
    uint32_t ctx_id = cmd->hdr.ctx_id;
    uint32_t capset = cmd->context_init & VIRTIO_GPU_CONTEXT_INIT_CAPSET_ID_MASK;
    const struct context_kind *kind = context_kind_find(capset);
    struct context *context;
    int connection = -1;
    int ret = 0;

    if (ctx_id == 0 || context_find(engine, ctx_id))
        return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
    if (cmd->nlen > sizeof(cmd->debug_name) ||
        (cmd->context_init & ~VIRTIO_GPU_CONTEXT_INIT_CAPSET_ID_MASK))
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    if (capset && (!kind || !capset_offered(engine, capset)))
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    if (g_hash_table_size(engine->contexts) >= ENGINE_MAX_CONTEXTS)
        return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;

    context = context_new(engine, ctx_id, kind);
    if (kind)
        ret = kind->create(engine, context, cmd->nlen, cmd->debug_name, &connection);
    if (ret != 0) {
        guest_warning("context %u: its renderer could not create it (%d)", ctx_id, ret);
        context_free(context);
        return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
    }
    if (kind && !lifelines_add(&engine->lifelines, ctx_id, connection, kind->receive != NULL)) {
        guest_warning("context %u: its worker cannot be watched", ctx_id);
        kind->end(context);
        context_free(context);
        return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
    }
    g_hash_table_insert(engine->contexts, GUINT_TO_POINTER(ctx_id), context);
    return VIRTIO_GPU_RESP_OK_NODATA;
}

bool context_add_lost(struct engine *engine, uint32_t ctx_id, uint32_t capset)
{
    const struct context_kind *kind = context_kind_find(capset);
    struct context *context;

    if (ctx_id == 0 || context_find(engine, ctx_id) || (capset && !kind) ||
        g_hash_table_size(engine->contexts) >= ENGINE_MAX_CONTEXTS)
        return false;
    context = context_new(engine, ctx_id, kind);
    g_hash_table_insert(engine->contexts, GUINT_TO_POINTER(ctx_id), context);
    context->lost = kind != NULL;
    context->lost_since = g_get_monotonic_time();
    context->withholds = context->lost && kind->withholds;
    return true;
}

void context_destroy_all(struct engine *engine)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, engine->contexts);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct context *context = value;

        if (context_has_renderer(context))
            context_end_worker(engine, context);
        g_hash_table_iter_remove(&iter);
        stuck_watch_progress();
    }
}

uint32_t context_cmd_destroy(struct engine *engine, const struct request *request)
{
    uint32_t ctx_id = request->hdr.ctx_id;
    struct context *context = context_find(engine, ctx_id);

    if (!context)
        return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;

    if (context_has_renderer(context))
        context_end_worker(engine, context);
    g_hash_table_remove(engine->contexts, GUINT_TO_POINTER(ctx_id));
    fence_fail_context(&engine->fences, ctx_id);
    return VIRTIO_GPU_RESP_OK_NODATA;
}

static uint32_t context_submit(struct engine *engine, struct context *context, uint32_t *commands,
                               size_t words)
{
    switch (context->kind->submit(engine, context, commands, words)) {
    case 0:
        return VIRTIO_GPU_RESP_OK_NODATA;
    case -EMSGSIZE:
    case -EINVAL:
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

/* Commands for a context's renderer that do not come through a ring. */
uint32_t context_cmd_submit(struct engine *engine, const struct request *request)
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
    return context_submit(engine, context, commands, cmd->size / sizeof(*commands));
}

void context_forget_resource(struct engine *engine, uint32_t resource_id)
{
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, engine->contexts);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct context *context = value;

        if (context_has_renderer(context) &&
            g_hash_table_contains(context->resources, GUINT_TO_POINTER(resource_id)))
            context->kind->detach(context, resource_id);
    }
}

/* Attaches it or detaches it. */
uint32_t context_cmd_change_resource(struct engine *engine, const struct request *request)
{
    bool attach = request->hdr.type == VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE;
    const struct virtio_gpu_ctx_resource *cmd = (const void *)request->data;
    struct context *context = context_find(engine, cmd->hdr.ctx_id);
    const struct resource *resource = resource_find(engine, cmd->resource_id);

    if (!context)
        return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
    if (!resource)
        return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
    /* Guests detach while they exit. That has nothing left to do. */
    if (context->lost && attach)
        return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
    if (context_has_renderer(context) && resource_has_renderer(resource))
        (attach ? context->kind->attach : context->kind->detach)(context, resource->id);
    return VIRTIO_GPU_RESP_OK_NODATA;
}
