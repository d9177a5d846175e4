// SPDX-License-Identifier: MIT
#include "hold.h"

#include "context.h"
#include "engine.h"

/* With more on the way an answer is requested, and as much again may be sent until it comes. */
#define ASK_ABOVE (CREDITS_MAX / 2)

/* The worker's answer has come, and the context is not held any more. */
static void hold_take_answer(struct engine *engine, struct context *context)
{
    if (!context->credits.fence || fence_is_pending(&engine->fences, context->credits.fence))
        return;
    credits_fence_answered(&context->credits);
    context->held_since = 0;
}

static void hold_ask(struct engine *engine, const struct context *context)
{
    uint64_t fence = fence_add_own(&engine->fences, context->id);

    if (context_create_fence(engine, context->id, 0, fence) != 0)
        fence_take_back(&engine->fences, fence);
}

/* False: the answer has come meanwhile, or the context was lost with the question. */
static bool hold_context(struct engine *engine, struct context *context)
{
    if (!context_has_renderer(context))
        return false;
    if (!fence_wake_when_done(&engine->fences, context->credits.fence)) {
        hold_take_answer(engine, context);
        return false;
    }
    if (!context->held_since)
        context->held_since = g_get_monotonic_time();
    return true;
}

bool hold_is_on(struct engine *engine, struct context *context)
{
    if (context->held_since)
        hold_take_answer(engine, context);
    return context->held_since != 0;
}

bool hold_unless_room(struct engine *engine, struct context *context, size_t bytes)
{
    const struct credits *credits = &context->credits;
    uint64_t cost = credits_cost(bytes);

    if (!context_has_renderer(context) || credits_in_flight(credits) + cost <= ASK_ABOVE)
        return false;
    hold_take_answer(engine, context);
    /* A message that is too long for the limit has to be alone. */
    if (credits_in_flight(credits) == 0)
        return false;
    if (!credits->fence && credits_in_flight(credits) + cost > ASK_ABOVE)
        hold_ask(engine, context);
    return credits_in_flight(credits) + cost > CREDITS_MAX && hold_context(engine, context);
}

bool hold_unless_idle(struct engine *engine, struct context *context)
{
    const struct credits *credits = &context->credits;

    if (!context_has_renderer(context) || credits->waits <= credits->answered)
        return false;
    hold_take_answer(engine, context);
    if (credits->waits <= credits->answered)
        return false;
    if (credits->fence_sent < credits->waits)
        hold_ask(engine, context);
    return hold_context(engine, context);
}

void hold_probe(struct engine *engine, struct context *context)
{
    hold_take_answer(engine, context);
    if (!context->credits.fence)
        hold_ask(engine, context);
    context->probe = context->credits.fence;
}

bool hold_unless_reached(struct engine *engine, struct context *context)
{
    if (context->probe && fence_is_pending(&engine->fences, context->probe))
        hold_context(engine, context);
    context->probe = 0;
    return hold_is_on(engine, context);
}
