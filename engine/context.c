// SPDX-License-Identifier: MIT
#include "context.h"

#include "engine.h"
#include "resource.h"
#include "rings.h"
#include "stuck.h"
#include "worker.h"

#include <errno.h>
#include <virglrenderer.h>

bool context_has_renderer(const struct context *context)
{
    return context && context->capset && !context->lost;
}

struct context *context_find(struct engine *engine, uint32_t ctx_id)
{
    return g_hash_table_lookup(engine->contexts, GUINT_TO_POINTER(ctx_id));
}

bool context_alive(struct engine *engine, uint32_t ctx_id)
{
    return context_has_renderer(context_find(engine, ctx_id));
}

/* In this order: virglrenderer ends the worker, and the fences that it then reports are ignored. */
static void end_worker(struct engine *engine, const struct context *context)
{
    lifelines_remove(&engine->lifelines, context->id);
    virgl_renderer_context_destroy(context->id);
}

/*
 * virglrenderer's context is destroyed at once: its fence thread would spin on the closed socket of
 * a dead worker.
 */
void context_end(struct engine *engine, struct context *context)
{
    if (!context_has_renderer(context))
        return;
    rings_fail(engine, context->serial, &context->rings);
    context->lost = true;
    context->lost_since = g_get_monotonic_time();
    end_worker(engine, context);
    context->withholds = true;
    if (!fence_withhold(&engine->fences, context->id))
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
        const struct context *context = value;

        rings_fail(engine, context->serial, &context->rings);
    }
}

void context_lost(struct engine *engine, struct context *context)
{
    if (!context_has_renderer(context))
        return;
    g_warning("context %u: its render worker has ended; its commands fail until the guest "
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

    ret = virgl_renderer_context_create_fence(ctx_id, VIRGL_RENDERER_FENCE_FLAG_MERGEABLE, ring_idx,
                                              fence_id);
    if (ret == 0)
        return 0;

    /* A proxy context refuses a ring with EINVAL and returns -1 if its worker cannot be reached. */
    if (context->capset == VIRTIO_GPU_CAPSET_VENUS && ret == -1) {
        context_lost(engine, context);
        return -ENOENT;
    }
    return ret < 0 ? ret : -ret;
}

static bool capset_offered(const struct engine *engine, uint32_t capset)
{
    for (uint32_t i = 0; i < engine->num_capsets; i++) {
        if (engine->capsets[i].id == capset)
            return true;
    }
    return false;
}

/*
 * If the guest names no capset it means OpenGL, as before CONTEXT_INIT. Linux' driver makes such a
 * context for every program that opens a frame buffer, and attaches the buffer to it, even if
 * nothing will be drawn with it. Without OpenGL the context serves only for that.
 */
static uint32_t capset_meant(const struct engine *engine, uint32_t named)
{
    if (named)
        return named;
    return capset_offered(engine, VIRTIO_GPU_CAPSET_VIRGL2) ? VIRTIO_GPU_CAPSET_VIRGL2 : 0;
}

static struct context *add(struct engine *engine, uint32_t ctx_id, uint32_t capset)
{
    struct context *context = g_new0(struct context, 1);

    context->id = ctx_id;
    context->serial = ++engine->contexts_made;
    context->capset = capset;
    g_hash_table_insert(engine->contexts, GUINT_TO_POINTER(ctx_id), context);
    return context;
}

uint32_t context_cmd_create(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_ctx_create *cmd = (const void *)request->data;
    uint32_t ctx_id = cmd->hdr.ctx_id;
    uint32_t capset =
        capset_meant(engine, cmd->context_init & VIRTIO_GPU_CONTEXT_INIT_CAPSET_ID_MASK);
    int connection = -1;
    int ret = 0;

    if (ctx_id == 0 || context_find(engine, ctx_id))
        return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
    if (cmd->nlen > sizeof(cmd->debug_name) ||
        (cmd->context_init & ~VIRTIO_GPU_CONTEXT_INIT_CAPSET_ID_MASK))
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    if (capset && !capset_offered(engine, capset))
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    if (g_hash_table_size(engine->contexts) >= ENGINE_MAX_CONTEXTS)
        return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;

    if (capset == VIRTIO_GPU_CAPSET_VENUS)
        ret = worker_create_context(ctx_id, capset, cmd->nlen, cmd->debug_name, &connection);
    else if (capset)
        ret = virgl_renderer_context_create_with_flags(ctx_id, capset, cmd->nlen, cmd->debug_name);
    if (ret != 0) {
        g_warning("context %u: virglrenderer could not create it (%d)", ctx_id, ret);
        return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
    }

    add(engine, ctx_id, capset);
    if (capset)
        lifelines_add(&engine->lifelines, ctx_id, connection);
    return VIRTIO_GPU_RESP_OK_NODATA;
}

bool context_add_lost(struct engine *engine, uint32_t ctx_id, uint32_t capset)
{
    struct context *context;

    if (ctx_id == 0 || context_find(engine, ctx_id) ||
        g_hash_table_size(engine->contexts) >= ENGINE_MAX_CONTEXTS)
        return false;
    context = add(engine, ctx_id, capset);
    context->lost = capset != 0;
    context->lost_since = g_get_monotonic_time();
    context->withholds = context->lost;
    return true;
}

void context_destroy_all(struct engine *engine)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, engine->contexts);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct context *context = value;

        if (context_has_renderer(context))
            end_worker(engine, context);
        g_hash_table_iter_remove(&iter);
        stuck_watch_progress();
    }
}

uint32_t context_cmd_destroy(struct engine *engine, const struct request *request)
{
    uint32_t ctx_id = request->hdr.ctx_id;
    const struct context *context = context_find(engine, ctx_id);

    if (!context)
        return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;

    if (context_has_renderer(context))
        end_worker(engine, context);
    g_hash_table_remove(engine->contexts, GUINT_TO_POINTER(ctx_id));
    fence_fail_context(&engine->fences, ctx_id);
    return VIRTIO_GPU_RESP_OK_NODATA;
}

static uint32_t check_ctx_resource(struct engine *engine, const struct request *request,
                                   const struct context *context)
{
    const struct virtio_gpu_ctx_resource *cmd = (const void *)request->data;

    if (!context)
        return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
    if (!resource_find(engine, cmd->resource_id))
        return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
    return VIRTIO_GPU_RESP_OK_NODATA;
}

uint32_t context_cmd_attach(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_ctx_resource *cmd = (const void *)request->data;
    const struct context *context = context_find(engine, cmd->hdr.ctx_id);
    uint32_t type = check_ctx_resource(engine, request, context);

    if (type != VIRTIO_GPU_RESP_OK_NODATA)
        return type;
    if (context->lost)
        return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;

    if (context_has_renderer(context))
        virgl_renderer_ctx_attach_resource((int)cmd->hdr.ctx_id, (int)cmd->resource_id);
    return VIRTIO_GPU_RESP_OK_NODATA;
}

/* Detaching from a lost context has nothing left to do. Guests do it while they exit. */
uint32_t context_cmd_detach(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_ctx_resource *cmd = (const void *)request->data;
    const struct context *context = context_find(engine, cmd->hdr.ctx_id);
    uint32_t type = check_ctx_resource(engine, request, context);

    if (type == VIRTIO_GPU_RESP_OK_NODATA && context_has_renderer(context))
        virgl_renderer_ctx_detach_resource((int)cmd->hdr.ctx_id, (int)cmd->resource_id);
    return type;
}
