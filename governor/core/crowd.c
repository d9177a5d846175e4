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

static bool is_in_flight(const struct sched_member *member)
{
    return member->sample.in_flight_ns && !member->stalled && !member->silent;
}

static guint crowd_in_flight(const struct sched_slice *slice)
{
    guint count = 0;

    for (guint i = 0; i < slice->members->len; i++)
        count += is_in_flight(MEMBER(slice, i));
    return count;
}

/*
 * Until when @member's work in flight, beside that of others, keeps another process from the GPU;
 * 0: it does not.
 */
static uint64_t runs_until(const struct sched_member *member, guint beside)
{
    const struct sample *sample = &member->sample;

    if (!is_in_flight(member))
        return 0;
    return MAX(sample->began_at_ns, sample->ended_at_ns) + beside * sample->in_flight_ns + LATE_NS;
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

/* For how long a process goes while others of its slice wait: each change costs the GPU. */
static uint64_t turn_ns(const struct scheduler *scheduler)
{
    return MAX(QUANTUM_NS, gpu_handover_lease(&scheduler->handover, 0));
}

/* Its turn is over. It is behind all others. */
static void crowd_put_last(struct sched_slice *slice, guint number)
{
    struct sched_member *member = g_ptr_array_steal_index(slice->members, number);

    member->goes_since = member->went_ns = 0;
    g_ptr_array_add(slice->members, member);
}

/* With the lease, all that went for long enough, in this one and others, had their turn. */
static void crowd_end_turns(const struct scheduler *scheduler, struct sched_slice *slice,
                            uint64_t now)
{
    for (guint i = slice->members->len; i--;) {
        struct sched_member *member = MEMBER(slice, i);

        if (!member->goes_since)
            continue;
        member->went_ns += now - member->goes_since;
        member->goes_since = 0;
        if (member->went_ns >= turn_ns(scheduler) / 2)
            crowd_put_last(slice, i);
    }
}

/* One at a time, so that the GPU stays busy: the one that has gone for longest. */
static void crowd_rotate(struct scheduler *scheduler, struct sched_slice *slice, uint64_t now)
{
    uint64_t since = TIME_NEVER, turn = turn_ns(scheduler);
    guint oldest = 0;

    for (guint i = 0; i < slice->members->len; i++) {
        const struct sched_member *member = MEMBER(slice, i);

        if (member->goes_since && member->goes_since < since) {
            since = member->goes_since;
            oldest = i;
        }
    }
    if (since == TIME_NEVER)
        return;
    if (now >= since + turn)
        crowd_put_last(slice, oldest);
    else
        scheduler_call_at(scheduler, since + turn);
}

/*
 * How many are on the GPU although their turn is over. They let the next ones go a moment before
 * their end; but not while a higher class would wait for both.
 */
static guint crowd_leaving(struct scheduler *scheduler, const struct sched_slice *slice,
                           guint in_flight, uint64_t now)
{
    uint64_t ahead = contend_outranked(scheduler, slice) ? 0 : NOTICE_NS;
    guint count = 0;

    for (guint i = 0; i < slice->members->len; i++) {
        const struct sched_member *member = MEMBER(slice, i);
        uint64_t until = runs_until(member, in_flight);

        if (member->goes_since || until <= now + LATE_NS + ahead)
            continue;
        count++;
        scheduler_call_at(scheduler, until - LATE_NS - ahead);
    }
    return count;
}

uint64_t crowd_choose(struct scheduler *scheduler, struct sched_slice *slice, uint64_t now)
{
    uint64_t depth = slice_depth(scheduler, slice, now);
    guint most = crowd_most(scheduler, slice, depth), count = slice->members->len;
    guint in_flight = crowd_in_flight(slice), busy = 0, chosen = 0, running = 0;
    bool holds = scheduler->lease.holder == slice;

    if (!holds)
        crowd_end_turns(scheduler, slice, now);
    else if (slice->crowded)
        crowd_rotate(scheduler, slice, now);
    if (most < count)
        running = crowd_leaving(scheduler, slice, in_flight, now);
    slice->crowded = false;
    for (guint i = 0; i < count; i++) {
        struct sched_member *member = MEMBER(slice, i);
        const struct sample *sample = &member->sample;
        uint64_t until = runs_until(member, in_flight);
        bool works = until > now || (sample->waiting && !sample->in_flight_ns && !member->silent);
        bool late = !works && is_in_flight(member) && most < count;

        busy += sample->waiting || sample->in_flight_ns;
        if (works)
            member->goes = chosen < most && (member->goes_since || running < most);
        else
            member->goes = !late || member->goes_since;
        slice->crowded |= !member->goes && sample->waiting;
        chosen += works;
        if (!works || !member->goes)
            continue;
        running++;
        if (holds && !member->goes_since)
            member->goes_since = now;
        if (until > now && most < count)
            scheduler_call_at(scheduler, until);
    }
    /* Whoever comes back from a pause waits for its turn, too. */
    for (guint i = 0; i < count && slice->crowded; i++)
        MEMBER(slice, i)->goes &=
            MEMBER(slice, i)->sample.waiting || MEMBER(slice, i)->sample.in_flight_ns;
    return MAX(depth / CLAMP(busy, 1, MAX(most, 1)), DEPTH_LEAST_NS);
}
