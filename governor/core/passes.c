// SPDX-License-Identifier: MIT
/*
 * Work in flight is late, and a thread of its slice waits for a lease: the work may be a kernel
 * that spins until what that thread submits has run. It uses up its slice's share, or its cap, and
 * so the lease would not come until long after.
 *
 * So a process of the slice gets a pass: one submission, without a lease. It is charged like any
 * other. The more the slice has exceeded its share or its cap already, the longer it takes until a
 * pass comes; otherwise there would be no cap for work that always takes longer than it says.
 *
 * The same holds for a program that spans several GPUs, which has a slice of each: its kernel on
 * one of them may spin until its kernel on another runs. There need be nothing late, because the
 * program's estimates contain the waiting.
 */
#include "scheduler.h"
#include "scheduler_parts.h"

/* Work is late after this time, or a quarter of a submission, up to the longest grace time. */
#define LATE_NS (2 * NS_PER_MS)
/* An estimate is not believed beyond this: it may come from work that waited for a pass. */
#define MOST_NS GRACE_MOST_NS
/*
 * The first pass comes later by a quarter of what the slice owes; each further one after a quarter
 * of the time for which the work is late.
 */
#define PART 4
/*
 * A partner's work counts as no older than this. So there is no pass for a slice that owes more
 * than PART times as much, however long a kernel of its program runs elsewhere.
 */
#define PARTNER_MOST_NS (250 * NS_PER_MS)

static bool waits_beside(const struct sched_slice *slice)
{
    for (guint i = 0; i < slice->members->len; i++) {
        if (MEMBER(slice, i)->sample.waiting_beside)
            return true;
    }
    return false;
}

/* When the work in flight of all members should have ended; TIME_NEVER: there is none. */
static uint64_t expected_end(const struct sched_slice *slice)
{
    uint64_t began_at = TIME_NEVER, ended_at = 0, in_flight_ns = 0;

    for (guint i = 0; i < slice->members->len; i++) {
        const struct sched_member *member = MEMBER(slice, i);

        ended_at = MAX(ended_at, member->sample.ended_at_ns);
        if (!member->sample.in_flight_ns || member->stalled)
            continue;
        began_at = MIN(began_at, member->sample.began_at_ns);
        in_flight_ns += member->sample.in_flight_ns;
    }
    return began_at == TIME_NEVER ? TIME_NEVER
                                  : MAX(began_at, ended_at) + MIN(in_flight_ns, MOST_NS);
}

/* How far @slice is ahead of the one that contends with it and has had least. */
static double ahead_of_least(const struct scheduler *scheduler, const struct sched_slice *slice)
{
    double least = slice->virtual_ns;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *other = SLICE(scheduler, i);

        if (other->active && slice_priority(scheduler, other) == slice_priority(scheduler, slice))
            least = MIN(least, other->virtual_ns);
    }
    return (slice->virtual_ns - least) * slice_weight(scheduler, slice);
}

/* How much more it has used than its share or its cap, without its work in flight. */
static uint64_t debt_ns(const struct scheduler *scheduler, const struct sched_slice *slice,
                        uint64_t now)
{
    struct budget cap = slice->cap;
    double exceeded = slice->capped ? -budget_balance(&cap, now) : 0;

    return (uint64_t)MAX(ahead_of_least(scheduler, slice), exceeded);
}

/* While a higher class is there, the lower ones have passes only as a part of their minimum. */
static bool takes_from_floor(struct scheduler *scheduler, uint64_t now)
{
    uint64_t at = budget_when(&scheduler->floor, FLOOR_SLOT_NS, now);

    if (at > now) {
        scheduler_call_at(scheduler, at);
        return false;
    }
    budget_spend(&scheduler->floor, FLOOR_SLOT_NS);
    return true;
}

/*
 * Since when the slice's work, or its partners', may wait for what its threads may not submit;
 * TIME_NEVER: it does not.
 */
static uint64_t late_since(const struct sched_slice *slice, uint64_t now)
{
    uint64_t end = expected_end(slice);
    uint64_t at = TIME_NEVER;

    /* It may well end in time. If not, the thread that waits reports again. */
    if (end <= now)
        at = end + slice_batch_part(slice, PART, LATE_NS, GRACE_MOST_NS);
    if (slice->partner_since)
        at = MIN(at, MAX(slice->partner_since, now - PARTNER_MOST_NS) + LATE_NS);
    return at;
}

static bool is_due(struct scheduler *scheduler, struct sched_slice *slice, uint64_t now)
{
    uint64_t at = waits_beside(slice) ? late_since(slice, now) : TIME_NEVER;

    if (at == TIME_NEVER) {
        slice->passes = 0;
        return false;
    }
    at = MAX(at + debt_ns(scheduler, slice, now) / PART, slice->pass_at);
    if (at <= now)
        return !contend_outranked(scheduler, slice) || takes_from_floor(scheduler, now);
    scheduler_call_at(scheduler, at);
    return false;
}

/*
 * Nobody knows whose submission the late work waits for: one process gets a pass, then two others,
 * then four. All at once would have as many submissions on the GPU, for which others wait.
 */
static void give_pass(struct sched_slice *slice, uint64_t now)
{
    uint64_t late = now - MIN(now, late_since(slice, now));
    uint64_t passed_ns = MIN(slice->in_flight_ns, MOST_NS);
    guint count = slice->members->len, most = 1u << MIN(slice->passes++, 16), last = 0;

    for (guint i = 1; i <= count && most; i++) {
        struct sched_member *member = MEMBER(slice, (slice->passed + i) % count);

        if (!member->sample.waiting_beside)
            continue;
        atomic_fetch_add_explicit(&member->grant->passes, 1, memory_order_release);
        member->changed = true;
        passed_ns += slice_batch_part(slice, 1, 0, MOST_NS);
        last = i;
        most--;
    }
    slice->passed += last;
    slice->pass_at = now + MAX(LATE_NS, late / PART);
    account_turn(slice, now, now + LATE_NS + 2 * passed_ns);
}

void passes_give(struct scheduler *scheduler, uint64_t now)
{
    for (guint i = 0; i < scheduler->slices->len; i++) {
        struct sched_slice *slice = SLICE(scheduler, i);
        bool holds = scheduler->lease.holder == slice && scheduler->lease.state != LEASE_DRAINING &&
                     holder_spent(scheduler, now) < scheduler->lease.limit_ns;

        slice->asks_partners = !holds && *slice->settings.partners && waits_beside(slice);
        if (!holds && is_due(scheduler, slice, now))
            give_pass(slice, now);
    }
}

uint64_t scheduler_in_flight_since(const struct sched_slice *slice, uint64_t now)
{
    uint64_t since = TIME_NEVER;

    for (guint i = 0; i < slice_members(slice); i++) {
        guint awake = slice->members->len;
        const struct sched_member *member =
            i < awake ? MEMBER(slice, i) : g_ptr_array_index(slice->resting, i - awake);
        struct sample sample = member->sample;

        sample_take(&sample, member->usage, member->came_at, now);
        if (sample.in_flight_ns && !member->stalled)
            since = MIN(since, MAX(sample.began_at_ns, sample.ended_at_ns));
    }
    return since == TIME_NEVER ? 0 : since;
}
