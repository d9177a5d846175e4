// SPDX-License-Identifier: MIT
#include "watch.h"

#include "context.h"
#include "engine.h"
#include "hold.h"
#include "mapping.h"

#include <virglrenderer.h>

#define PATIENCE_MIN 10

struct served {
    struct engine *engine;
    uint32_t ctx_id;
};

static const void *map_ring(void *data, uint32_t resource, uint64_t *size)
{
    const struct served *served = data;

    return mapping_get_shm(served->engine, resource, size);
}

static void unmap_ring(void *data, uint32_t resource)
{
    const struct served *served = data;

    mapping_put_shm(served->engine, resource);
}

/* A worker that has gone is found out by its fence. */
static void send(void *data, uint32_t *commands, uint32_t words)
{
    const struct served *served = data;

    virgl_renderer_submit_cmd(commands, (int)served->ctx_id, (int)words);
}

/* Said once: a guest can make it so at every look. */
static void wake_rings(struct engine *engine, struct context *context)
{
    static const struct venus_ring_access access = {map_ring, unmap_ring, send};
    struct served served = {engine, context->id};

    if (!venus_rings_wake(&context->rings, &access, &served))
        return;
    if (!context->woken)
        g_message("context %u: its render worker slept with commands in a ring, and is woken",
                  context->id);
    context->woken = true;
}

static void give_up_if_stuck(struct engine *engine, struct context *context)
{
    if (g_get_monotonic_time() - context->held_since < PATIENCE_MIN * G_TIME_SPAN_MINUTE)
        return;
    g_warning("context %u: its render worker has not answered for %u minutes, and is ended; its "
              "commands fail until the guest destroys it",
              context->id, PATIENCE_MIN);
    context_end(engine, context);
}

static void probe(struct engine *engine, struct context *context)
{
    bool is_new;
    uint64_t id = fence_probe(&engine->fences, context->id, &is_new);

    context->probe = id;
    if (is_new && context_create_fence(engine, context->id, 0, id) != 0)
        fence_take_back(&engine->fences, id);
}

static void look_at(struct engine *engine, struct context *context)
{
    hold_unless_reached(engine, context, context->probe);
    context->probe = 0;
    if (hold_is_on(engine, context)) {
        give_up_if_stuck(engine, context);
        return;
    }
    wake_rings(engine, context);
    probe(engine, context);
}

void watch_contexts(struct engine *engine)
{
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, engine->contexts);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct context *context = value;

        if (!context->lost && context->capset == VIRTIO_GPU_CAPSET_VENUS)
            look_at(engine, context);
    }
}
