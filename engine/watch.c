// SPDX-License-Identifier: MIT
#include "watch.h"

#include "context.h"
#include "context_kind.h"
#include "engine.h"
#include "guest_log.h"
#include "hold.h"

#define PATIENCE_MIN 10

/* Connections that are looked at in one turn. */
#define READS_MOST 256

/* Less than the two minutes after which Linux complains about a task that waits for a fence. */
#define WITHHELD_FOR (60 * G_TIME_SPAN_SECOND)

/*
 * After work that took a minute the governor holds the next one back until the slice is at its cap
 * again: with 5 % for 19 minutes. The worker answers nothing meanwhile.
 */
static void give_up_if_stuck(struct engine *engine, struct context *context)
{
    unsigned int minutes = PATIENCE_MIN * 100 / CLAMP(engine->info.cap, 1, 100);

    if (g_get_monotonic_time() - context->held_since < minutes * G_TIME_SPAN_MINUTE)
        return;
    guest_warning("context %u: its render worker has not answered for %u minutes, and is ended; "
                  "its commands fail until the guest destroys it",
                  context->id, minutes);
    context_end(engine, context);
}

/* False: it must be looked at again. */
static bool watch_context(struct engine *engine, struct context *context)
{
    if (context->lost) {
        if (context->withholds && g_get_monotonic_time() - context->lost_since >= WITHHELD_FOR)
            context_give_answers(engine, context);
        return !context->withholds;
    }
    if (hold_unless_reached(engine, context)) {
        give_up_if_stuck(engine, context);
        return false;
    }
    if (context->kind->wake(engine, context)) {
        /* Logged once: a guest can cause it at every check. */
        if (!context->woken)
            g_message("context %u: its render worker slept with commands in a ring, and is woken",
                      context->id);
        context->woken = true;
    }
    hold_probe(engine, context);
    return context->kind->rest(engine, context);
}

bool watch_contexts(struct engine *engine)
{
    GHashTableIter iter;
    bool rest = true;
    void *value;

    g_hash_table_iter_init(&iter, engine->contexts);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct context *context = value;

        if (context->kind && !watch_context(engine, context))
            rest = false;
    }
    return rest;
}

void watch_lost(struct engine *engine)
{
    uint32_t ctx_id;

    /* A worker that always has something to say must not keep the guest waiting. */
    for (int i = 0; i < READS_MOST && (ctx_id = lifelines_next_cut(&engine->lifelines)); i++) {
        struct context *context = context_find(engine, ctx_id);

        if (context_has_renderer(context) && context->kind->receive &&
            context->kind->receive(context))
            continue;
        engine->rests = 0; /* its answers have to be given in time */
        lifelines_remove(&engine->lifelines, ctx_id);
        context_lost(engine, context);
    }
}
