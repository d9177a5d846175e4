// SPDX-License-Identifier: MIT
#include "engine.h"

#include "capset.h"
#include "children.h"
#include "context.h"
#include "exit_code.h"
#include "renderer.h"
#include "resource.h"
#include "resource_commands.h"

#include <string.h>
#include <virglrenderer.h>

#define FIRST_REQUEST_BUF 65536u

void engine_set_request_buf(struct engine *engine, size_t size)
{
    g_free(engine->request_buf);
    engine->request_buf_size = size;
    engine->request_buf = g_malloc(size);
}

void engine_init(struct engine *engine, struct vgpu_transport *transport)
{
    memset(engine, 0, sizeof(*engine));
    engine->transport = transport;
    engine->resources = g_hash_table_new_full(NULL, NULL, NULL, resource_free);
    engine->contexts = g_hash_table_new_full(NULL, NULL, NULL, context_free);
    engine_set_request_buf(engine, FIRST_REQUEST_BUF);
    engine->response = g_byte_array_new();
    cuda_host_init(&engine->cuda);
    fence_table_init(&engine->fences, transport);
    lifelines_init(&engine->lifelines);
    scanout_init(&engine->scanout);
}

void engine_clear(struct engine *engine)
{
    painter_clear(&engine->scanout.painter);
    g_hash_table_destroy(engine->resources);
    g_hash_table_destroy(engine->contexts);
    g_free(engine->request_buf);
    g_byte_array_unref(engine->response);
    fence_table_clear(&engine->fences);
    lifelines_clear(&engine->lifelines);
    parking_clear(&engine->parking);
    cuda_host_clear(&engine->cuda);
}

static void on_ring_fence(void *data, uint32_t ctx_id, uint32_t ring_idx, uint64_t id)
{
    struct engine *engine = data;
    int connection = lifelines_borrow(&engine->lifelines, ctx_id);

    if (connection >= 0)
        fence_signal_ring(&engine->fences, ctx_id, ring_idx, id, connection);
    lifelines_return(&engine->lifelines);
}

bool engine_start_renderer(struct engine *engine, GError **error)
{
    children_adopt();
    if (!renderer_start(on_ring_fence, engine, error))
        return false;
    engine->has_renderer = true;
    engine->render_server = children_only();
    /*
     * The render server has its copy. Its workers charge the memory; the layer in this process
     * would charge once more what it imports to map it.
     */
    g_unsetenv("VGPU_GOVERNOR");
    capset_collect(engine);
    if (engine->num_capsets && engine->capsets[0].id == VIRTIO_GPU_CAPSET_VENUS)
        return true;
    renderer_stop();
    g_set_error(error, ENGINE_ERROR, EXIT_CODE_RENDERER, "virglrenderer offers no Venus");
    return false;
}

void engine_start_without_renderer(struct engine *engine)
{
    children_adopt();
    capset_collect(engine);
}

/*
 * virglrenderer's own reset destroys its objects. But it does not unmap mapped resources, does not
 * return guest memory, and does not show its progress. So all of that is done before it. Contexts
 * go first: nothing is said to their workers of the resources.
 */
void engine_reset(struct engine *engine)
{
    scanout_reset(engine);
    context_destroy_all(engine);
    resource_release_all(engine);
    if (engine->has_renderer)
        virgl_renderer_reset();
    fence_forget_all(&engine->fences);
    parking_clear(&engine->parking);

    /* Memory for one large request must not stay allocated. */
    if (engine->request_buf_size > FIRST_REQUEST_BUF)
        engine_set_request_buf(engine, FIRST_REQUEST_BUF);
}
