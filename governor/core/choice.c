// SPDX-License-Identifier: MIT
#include "scheduler_parts.h"

/* By its sample: some of its members may have become silent since the last look. */
static bool is_eligible(struct sched_slice *slice, uint64_t now)
{
    return slice->wanting && slice->sample.waiting && caps_allow(slice, now);
}

static bool is_above(const struct scheduler *scheduler, const struct sched_slice *slice,
                     const struct sched_slice *other)
{
    return !other || slice_priority(scheduler, slice) > slice_priority(scheduler, other);
}

/*
 * One whose work is expected goes before lower classes, whose work has then left the GPU when its
 * own comes. Nobody of its own class waits for what may not come.
 */
static struct sched_slice *expected_above(struct scheduler *scheduler, struct sched_slice *best,
                                          const struct sched_slice *except, uint64_t now)
{
    for (guint i = 0; i < scheduler->slices->len; i++) {
        struct sched_slice *slice = SLICE(scheduler, i);

        if (slice != except && now < slice->expected_until && !slice->sample.in_flight_ns &&
            is_above(scheduler, slice, best) && caps_allow(slice, now))
            best = slice;
    }
    return best;
}

struct sched_slice *choice_best(struct scheduler *scheduler, const struct sched_slice *except,
                                uint64_t now)
{
    struct sched_slice *best = NULL;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        struct sched_slice *slice = SLICE(scheduler, i);

        if (slice == except || !is_eligible(slice, now))
            continue;
        if (is_above(scheduler, slice, best) ||
            (slice_priority(scheduler, slice) == slice_priority(scheduler, best) &&
             slice_virtual(scheduler, slice) < slice_virtual(scheduler, best)))
            best = slice;
    }
    return expected_above(scheduler, best, except, now);
}

/* The one of the lower classes that has waited longest, so that the lowest has its turn, too. */
struct sched_slice *choice_floor(struct scheduler *scheduler, uint64_t now)
{
    struct sched_slice *best = choice_best(scheduler, NULL, now);
    struct sched_slice *lower = NULL;

    for (guint i = 0; best && i < scheduler->slices->len; i++) {
        struct sched_slice *slice = SLICE(scheduler, i);

        if (is_eligible(slice, now) &&
            slice_priority(scheduler, slice) < slice_priority(scheduler, best) &&
            (!lower || slice->served_at < lower->served_at))
            lower = slice;
    }
    if (!lower)
        return NULL;
    if (budget_balance(&scheduler->floor, now) >= FLOOR_SLOT_NS)
        return lower;
    scheduler_call_at(scheduler, budget_when(&scheduler->floor, FLOOR_SLOT_NS, now));
    return NULL;
}
