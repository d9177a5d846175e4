// SPDX-License-Identifier: MIT
/*
 * Which processes of a slice may use its lease. Each of them leaves a submission on the GPU, for
 * which a higher class, or the next slice, would wait: so only as many go at a time as fill the
 * slice's depth. The others take turns with them. While nobody contends with the slice all may go.
 */
#include "scheduler_parts.h"

/* Work that is so late may wait for another process's, which may then go as well. */
#define LATE_NS (2 * NS_PER_MS)

/* How much the slice may have on the GPU, by all of its processes. */
static uint64_t slice_depth(const struct scheduler *scheduler, const struct sched_slice *slice,
                            uint64_t now)
{
    uint64_t depth = handover_depth(&slice->handover);

    /* A higher class waits for all of it, each time. */
    if (contend_outranked(scheduler, slice))
        return depth / 2;
    return tempo_is_steady(scheduler, now) ? MAX(depth, DEPTH_STEADY_NS) : depth;
}

/* Until when @member's work in flight keeps another process from the GPU; 0: it does not. */
static uint64_t runs_until(const struct sched_member *member, guint most)
{
    const struct sample *sample = &member->sample;

    if (!sample->in_flight_ns || member->stalled || member->silent)
        return 0;
    return MAX(sample->began_at_ns, sample->ended_at_ns) + most * sample->in_flight_ns + LATE_NS;
}

/*
 * How many of the slice's processes may have work in flight: two of them fill each other's pauses
 * without a look.
 */
static guint crowd_most(const struct scheduler *scheduler, const struct sched_slice *slice,
                        uint64_t depth)
{
    bool outranked = contend_outranked(scheduler, slice);
    double fill = 1 + (double)depth / MAX(slice->batch_ns, 1);

    if (!outranked && !contend_has_rivals(scheduler, slice))
        return slice->members->len;
    return (guint)MIN(MAX(fill, outranked ? 1 : 2), slice->members->len);
}

static guint crowd_running(struct scheduler *scheduler, const struct sched_slice *slice, guint most,
                           uint64_t now)
{
    guint count = 0;

    for (guint i = 0; i < slice->members->len; i++) {
        uint64_t until = runs_until(MEMBER(slice, i), most);

        if (until <= now)
            continue;
        count++;
        if (most < slice->members->len)
            scheduler_call_at(scheduler, until);
    }
    return count;
}

uint64_t crowd_choose(struct scheduler *scheduler, struct sched_slice *slice, uint64_t now)
{
    uint64_t depth = slice_depth(scheduler, slice, now);
    guint count = slice->members->len, most = crowd_most(scheduler, slice, depth);
    guint running = crowd_running(scheduler, slice, most, now), busy = 0;

    slice->crowded = false;
    for (guint i = 0; i < count; i++) {
        guint number = (slice->first + i) % count;
        struct sched_member *member = MEMBER(slice, number);
        bool waits = member->sample.waiting && !member->sample.in_flight_ns && !member->silent;

        busy += member->sample.waiting || member->sample.in_flight_ns;
        member->goes = !waits || running < most;
        slice->crowded |= !member->goes;
        running += waits;
        if (waits && member->goes)
            slice->next = number + 1;
    }
    /* Whoever comes back from a pause waits for its turn, too. */
    for (guint i = 0; i < count && slice->crowded; i++)
        MEMBER(slice, i)->goes &=
            MEMBER(slice, i)->sample.waiting || MEMBER(slice, i)->sample.in_flight_ns;
    return MAX(depth / CLAMP(busy, 1, MAX(most, 1)), DEPTH_LEAST_NS);
}
