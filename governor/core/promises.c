// SPDX-License-Identifier: MIT
/*
 * The weight by which each slice's time is divided. A slice that was promised a part of the GPU has
 * at least that while it has work, whatever weights others have: weights divide what is left of the
 * promises. So the one that would have too little by its weight gets a higher one.
 */
#include "scheduler_parts.h"

/* Promises take no more than this together: everybody gets something. */
#define PROMISED_MOST 0.99

/* Of those of @priority: their sums of weight and of promises; and those of the bounded ones. */
struct division {
    double weight, promised;
    double bounded_weight, bounded;
};

static bool takes_part(const struct scheduler *scheduler, const struct sched_slice *slice,
                       unsigned priority)
{
    return (slice->active || scheduler->free == slice) &&
           slice_priority(scheduler, slice) == priority;
}

static double own_weight(const struct sched_slice *slice)
{
    return (double)slice->settings.weight / 100;
}

/* A unit of weight is so much of the GPU. */
static double unit_of(const struct division *division)
{
    double weight = division->weight - division->bounded_weight;

    return weight > 0 ? (1 - division->bounded) / weight : 1 / division->weight;
}

/* Promises beyond @most are cut all alike. Who gets more by promise than by weight is bounded. */
static void divide(struct scheduler *scheduler, unsigned priority, struct division *division)
{
    double part = MIN(PROMISED_MOST / MAX(division->promised, PROMISED_MOST), 1);
    bool changed;

    do {
        double unit = unit_of(division);

        changed = false;
        for (guint i = 0; i < scheduler->slices->len; i++) {
            struct sched_slice *slice = SLICE(scheduler, i);
            double promised = part * slice->settings.share_ppm / 1e6;

            if (!takes_part(scheduler, slice, priority) || slice->promised_part > 0 ||
                promised <= own_weight(slice) * unit)
                continue;
            slice->promised_part = promised;
            division->bounded += promised;
            division->bounded_weight += own_weight(slice);
            changed = true;
        }
    } while (changed);
}

static void divide_class(struct scheduler *scheduler, unsigned priority)
{
    struct division division = {0};
    double unit;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *slice = SLICE(scheduler, i);

        if (!takes_part(scheduler, slice, priority))
            continue;
        division.weight += own_weight(slice);
        division.promised += slice->settings.share_ppm / 1e6;
    }
    if (division.promised <= 0)
        return;
    divide(scheduler, priority, &division);
    unit = unit_of(&division);
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

        slice->weight = own_weight(slice);
        slice->promised_part = 0;
        any |= slice->settings.share_ppm > 0;
    }
    for (unsigned i = 0; i < PRIORITIES && any && scheduler->policy == POLICY_SHARES; i++)
        divide_class(scheduler, i);
}
