// SPDX-License-Identifier: MIT
#include "engine.h"

#include "capset.h"
#include "context.h"
#include "control.h"
#include "display.h"
#include "exit_code.h"
#include "renderer.h"
#include "resource.h"

#include <errno.h>
#include <string.h>

#define FIRST_REQUEST_BUF 65536u

void engine_init(struct engine *engine, struct vgpu_transport *transport)
{
    memset(engine, 0, sizeof(*engine));
    engine->transport = transport;
    engine->resources = g_hash_table_new_full(NULL, NULL, NULL, resource_free);
    engine->contexts = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    engine->request_buf_size = FIRST_REQUEST_BUF;
    engine->request_buf = g_malloc(engine->request_buf_size);
    engine->response = g_byte_array_new();
    fence_table_init(&engine->fences);
}

void engine_clear(struct engine *engine)
{
    g_hash_table_destroy(engine->resources);
    g_hash_table_destroy(engine->contexts);
    g_free(engine->request_buf);
    g_byte_array_unref(engine->response);
    fence_table_clear(&engine->fences);
}

static void on_ring_fence(void *engine, uint32_t ctx_id, uint32_t ring_idx, uint64_t id)
{
    fence_signal_ring(engine, ctx_id, ring_idx, id);
}

static void on_global_fence(void *engine, uint32_t id)
{
    fence_signal_global(engine, id);
}

bool engine_start_renderer(struct engine *engine, uint32_t capsets, const char *render_node,
                           GError **error)
{
    static const struct renderer_events events = {on_ring_fence, on_global_fence};
    uint32_t got = renderer_start(&events, engine, capsets, render_node, error);

    if (!got)
        return false;
    engine->virgl = got & CAPSET_VIRGL;
    capset_collect(engine, got);
    if (engine->num_capsets == 0) {
        renderer_stop();
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_RENDERER,
                    "virglrenderer offers none of the capsets asked for");
        return false;
    }
    return true;
}

/*
 * virglrenderer's own reset destroys what there is but neither unmaps what is mapped nor gives back
 * what guest memory was lent to it, nor shows how far it has come: that comes before, and our own
 * tables after.
 */
bool engine_reset(struct engine *engine)
{
    bool ok;

    scanout_reset(engine);
    resource_release_all(engine);
    context_destroy_all(engine);
    ok = renderer_reset();
    g_hash_table_remove_all(engine->resources);
    fence_forget_all(engine);

    /* What one large request needed shall not stay. */
    if (engine->request_buf_size > FIRST_REQUEST_BUF) {
        g_free(engine->request_buf);
        engine->request_buf_size = FIRST_REQUEST_BUF;
        engine->request_buf = g_malloc(engine->request_buf_size);
    }
    return ok;
}

void *engine_response(struct engine *engine, size_t size)
{
    g_byte_array_set_size(engine->response, (guint)size);
    memset(engine->response->data, 0, size);
    return engine->response->data;
}

static void grow_request_buf(struct engine *engine, uint64_t size)
{
    g_free(engine->request_buf);
    engine->request_buf_size = size;
    engine->request_buf = g_malloc(size);
}

/* 0, or the negative errno of pop. @truncated: the request is larger than we take. */
static int pop_request(struct engine *engine, uint32_t queue, struct request *request,
                       bool *truncated)
{
    struct vgpu_transport *transport = engine->transport;
    struct vgpu_queue_pop pop = {
        .epoch = engine->epoch,
        .flags = engine->polling && queue == VGPU_QUEUE_CONTROL ? VGPU_POP_POLL : 0,
        .queue = queue,
        .buf = (uintptr_t)engine->request_buf,
        .buf_size = engine->request_buf_size,
    };
    int ret = transport->ops->pop(transport, &pop);

    if (ret == -EMSGSIZE) {
        if (pop.request_size > ENGINE_MAX_REQUEST)
            pop.flags |= VGPU_POP_TRUNCATE;
        else if (pop.request_size > engine->request_buf_size)
            grow_request_buf(engine, pop.request_size);
        pop.buf = (uintptr_t)engine->request_buf;
        pop.buf_size = engine->request_buf_size;
        ret = transport->ops->pop(transport, &pop);
    }
    if (ret < 0)
        return ret;

    *truncated = pop.request_size > engine->request_buf_size;
    memset(request, 0, sizeof(*request));
    request->data = engine->request_buf;
    request->size = MIN(pop.request_size, engine->request_buf_size);
    request->response_size = pop.response_size;
    request->epoch = engine->epoch;
    request->queue = queue;
    request->token = pop.token;
    if (request->size >= sizeof(request->hdr))
        memcpy(&request->hdr, request->data, sizeof(request->hdr));
    return 0;
}

static void process_request(struct engine *engine, const struct request *request, bool truncated)
{
    if (request->queue == VGPU_QUEUE_CURSOR) {
        /* Cursor commands have no answer. */
        if (!truncated)
            display_cursor_command(engine, request);
        g_byte_array_set_size(engine->response, 0);
        fence_push(engine, request);
    } else if (truncated) {
        control_reject(engine, request, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
    } else {
        control_process(engine, request);
    }
}

int engine_run_queue(struct engine *engine, uint32_t queue, unsigned int budget)
{
    for (unsigned int i = 0; i < budget; i++) {
        struct request request;
        bool truncated = false;
        int ret = pop_request(engine, queue, &request, &truncated);

        if (ret == -EAGAIN)
            return 0;
        if (ret == -ESTALE || ret == -EPROTO || ret == -ENOTCONN)
            return ret;
        /*
         * EMSGSIZE again: the guest has changed the chain in between. ENOMEM, EFAULT: this chain
         * has failed. There may be others, of which no kick will tell.
         */
        if (ret < 0)
            continue;
        engine->requests++;
        process_request(engine, &request, truncated);
    }
    return 1;
}
