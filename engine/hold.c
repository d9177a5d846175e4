// SPDX-License-Identifier: MIT
#include "hold.h"

#include "context.h"
#include "engine.h"
#include "mapping.h"

/*
 * A program can forge its ring's head, so that its worker waits although this says otherwise. That
 * stops its own VM until the watchdog ends the engine.
 */
static bool has_come_to(struct engine *engine, const struct context *context,
                        const struct venus_ring *ring, uint32_t seqno)
{
    uint64_t size;
    const void *memory = mapping_get_shm(engine, context->serial, ring->resource, &size);
    bool has = memory && venus_ring_has_come_to(ring, seqno, memory, size);

    if (memory)
        mapping_put_shm(engine, ring->resource);
    return has;
}

static bool may_wait(struct engine *engine, const struct context *context, const uint32_t *commands,
                     size_t words)
{
    const struct venus_ring *ring = NULL;
    uint32_t seqno = 0;

    switch (venus_rings_pace(&context->rings, commands, words, &ring, &seqno)) {
    case VENUS_AT_ONCE:
        return false;
    case VENUS_WAITS_FOR_RING:
        return !has_come_to(engine, context, ring, seqno);
    default:
        return true;
    }
}

static void hold(struct engine *engine, struct context *context, uint64_t fence)
{
    if (!fence_wake_when_done(&engine->fences, fence))
        return;
    context->barrier = fence;
    context->held_since = g_get_monotonic_time();
}

void hold_submitted(struct engine *engine, struct context *context, const uint32_t *commands,
                    size_t words)
{
    uint64_t fence;

    if (!may_wait(engine, context, commands, words))
        return;
    fence = fence_add_own(&engine->fences, context->id);
    if (context_create_fence(engine, context->id, 0, fence) == 0)
        hold(engine, context, fence);
    else
        fence_take_back(&engine->fences, fence);
}

void hold_unless_reached(struct engine *engine, struct context *context, uint64_t probe)
{
    /* What it was sent since is behind a later fence. */
    if (probe && !hold_is_on(engine, context))
        hold(engine, context, probe);
}

bool hold_is_on(struct engine *engine, struct context *context)
{
    if (!context->barrier)
        return false;
    if (fence_is_pending(&engine->fences, context->barrier))
        return true;
    context->barrier = 0;
    return false;
}
