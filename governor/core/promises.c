// SPDX-License-Identifier: MIT
/*
 * The weight by which each slice's time is divided. A slice that was promised a part of the GPU has
 * at least that while it has work, whatever weights others have: weights divide what is left of the
 * promises. So the one that would have too little by its weight gets a higher one. If more was
 * promised than there is, guaranteed promises come first, and what they leave is divided among the
 * others in proportion to theirs.
 */
#include "scheduler_parts.h"

/* Promises take no more than this together: everybody gets something. */
#define PROMISED_MOST 0.99

static bool takes_part(const struct scheduler *scheduler, const struct sched_slice *slice,
                       unsigned priority)
{
    return (slice->active || scheduler->free == slice) &&
           slice_priority(scheduler, slice) == priority;
}

/* What weights divide, for a unit of weight. */
static double unit_of(const struct scheduler *scheduler, unsigned priority)
{
    double left = 1, weight = 0;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *slice = SLICE(scheduler, i);

        if (!takes_part(scheduler, slice, priority))
            continue;
        left -= slice->promised_part;
        weight += slice->promised_part > 0 ? 0 : slice->weight;
    }
    /* If it is nothing, all that counts is how promises compare. */
    return weight > 0 ? left / weight : 0.01;
}

/* What counts of promises, by whether they are guaranteed. */
struct promise_parts {
    double of[2];
};

/* True if some slice's part of the GPU is now what it was promised, as far as that counts. */
static bool bound_by_promise(struct scheduler *scheduler, unsigned priority,
                             const struct promise_parts *parts)
{
    double unit = unit_of(scheduler, priority);
    bool any = false;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        struct sched_slice *slice = SLICE(scheduler, i);
        const struct slice_settings *settings = &slice->settings;
        double promised = parts->of[settings->guaranteed] * settings->share_ppm / 1e6;

        if (!takes_part(scheduler, slice, priority) || slice->promised_part > 0 ||
            promised <= slice->weight * unit)
            continue;
        slice->promised_part = promised;
        any = true;
    }
    return any;
}

static void divide_promises(struct scheduler *scheduler, unsigned priority)
{
    double promised[2] = {0}, left = PROMISED_MOST, unit;
    struct promise_parts parts;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *slice = SLICE(scheduler, i);

        if (takes_part(scheduler, slice, priority))
            promised[slice->settings.guaranteed] += slice->settings.share_ppm / 1e6;
    }
    for (int guaranteed = 1; guaranteed >= 0; guaranteed--) {
        parts.of[guaranteed] = promised[guaranteed] > left ? left / promised[guaranteed] : 1;
        left -= MIN(left, promised[guaranteed]);
    }
    while (promised[0] + promised[1] > 0 && bound_by_promise(scheduler, priority, &parts))
        ;
    unit = unit_of(scheduler, priority);
    for (guint i = 0; i < scheduler->slices->len; i++) {
        struct sched_slice *slice = SLICE(scheduler, i);

        if (slice->promised_part > 0 && slice_priority(scheduler, slice) == priority)
            slice->weight = slice->promised_part / unit;
    }
}

void promises_update(struct scheduler *scheduler)
{
    bool any = false;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        struct sched_slice *slice = SLICE(scheduler, i);

        slice->weight = (double)slice->settings.weight / 100;
        slice->promised_part = 0;
        any |= slice->settings.share_ppm > 0;
    }
    for (unsigned i = 0; any && i < PRIORITIES && scheduler->policy == POLICY_SHARES; i++)
        divide_promises(scheduler, i);
}
