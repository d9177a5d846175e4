// SPDX-License-Identifier: MIT
#include "scheduler_parts.h"

/* Members of a slice take turns. */
static struct sched_member *next_member(const struct sched_slice *slice,
                                        const struct sched_member *except)
{
    for (guint i = 0; i < slice->members->len; i++) {
        struct sched_member *member = MEMBER(slice, (slice->turn + i) % slice->members->len);

        if (member != except && member->sample.waiting && !member->silent)
            return member;
    }
    return NULL;
}

static bool eligible(struct sched_slice *slice, const struct sched_member *except, uint64_t now)
{
    return slice->wanting && next_member(slice, except) && caps_allow(slice, now);
}

static struct sched_slice *best_slice(struct scheduler *scheduler,
                                      const struct sched_member *except, uint64_t now)
{
    struct sched_slice *best = NULL;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        struct sched_slice *slice = SLICE(scheduler, i);

        if (!eligible(slice, except, now))
            continue;
        if (!best || slice_priority(scheduler, slice) > slice_priority(scheduler, best) ||
            (slice_priority(scheduler, slice) == slice_priority(scheduler, best) &&
             slice_virtual(scheduler, slice) < slice_virtual(scheduler, best)))
            best = slice;
    }
    return best;
}

struct sched_member *choice_best(struct scheduler *scheduler, const struct sched_member *except,
                                 uint64_t now)
{
    struct sched_slice *best = best_slice(scheduler, except, now);

    return best ? next_member(best, except) : NULL;
}

/* The one of the lower classes that has waited longest, so that the lowest has its turn, too. */
struct sched_member *choice_floor(struct scheduler *scheduler, uint64_t now)
{
    struct sched_slice *best = best_slice(scheduler, NULL, now);
    struct sched_slice *lower = NULL;

    for (guint i = 0; best && i < scheduler->slices->len; i++) {
        struct sched_slice *slice = SLICE(scheduler, i);

        if (eligible(slice, NULL, now) &&
            slice_priority(scheduler, slice) < slice_priority(scheduler, best) &&
            (!lower || slice->served_at < lower->served_at))
            lower = slice;
    }
    if (!lower)
        return NULL;
    if (budget_balance(&scheduler->floor, now) >= FLOOR_SLOT_NS)
        return next_member(lower, NULL);
    scheduler_call_at(scheduler, budget_when(&scheduler->floor, FLOOR_SLOT_NS, now));
    return NULL;
}
