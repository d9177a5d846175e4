// SPDX-License-Identifier: MIT
/*
 * What the GPU has executed for the lease's holder, and when it will have executed the rest in
 * flight.
 */
#include "scheduler_parts.h"

/* What its members have queued from when it was free. It has been charged for that. */
static uint64_t slice_backlog(const struct sched_slice *slice)
{
    uint64_t ns = 0;

    for (guint i = 0; i < slice->members->len; i++)
        ns += MEMBER(slice, i)->sample.backlog_ns;
    return ns;
}

/* Others' work in flight, as far as known. */
static uint64_t others_in_flight(const struct scheduler *scheduler, const struct sched_slice *slice)
{
    uint64_t ns = 0;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        if (SLICE(scheduler, i) != slice)
            ns += SLICE(scheduler, i)->in_flight_ns + slice_backlog(SLICE(scheduler, i));
    }
    return ns;
}

/* The work of @other before that of @slice, by its own statement. */
static uint64_t claim_of(const struct sched_member *other, const struct sched_slice *slice,
                         uint64_t now)
{
    if (other->slice == slice || other->stalled || other->silent)
        return 0;
    return sample_remaining(&other->sample, now);
}

uint64_t holder_others_end(struct scheduler *scheduler, const struct sched_slice *next,
                           uint64_t now)
{
    uint64_t ns = 0;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *slice = SLICE(scheduler, i);

        for (guint j = 0; j < slice->members->len; j++) {
            struct sched_member *other = MEMBER(slice, j);

            other->claim_ns = claim_of(other, next, now);
            other->claim_base = other->charged_ns;
            ns += other->claim_ns;
        }
    }
    for (guint i = 0; i < scheduler->slices->len; i++) {
        if (SLICE(scheduler, i) != next)
            ns += slice_backlog(SLICE(scheduler, i));
    }
    if (!others_in_flight(scheduler, next))
        return 0;
    /* Overdue work is assumed to take a little longer. */
    return now + MAX(ns, NOTICE_NS);
}

/* Within a pipeline, the next lease is given a little before the end of the last one's work. */
static bool is_in_turn(const struct lease *lease)
{
    return lease->others_until <= lease->granted_at + 2 * lease->lead_ns;
}

void holder_note_others_end(struct scheduler *scheduler, uint64_t now)
{
    struct lease *lease = &scheduler->lease;

    if (lease->holder && lease->others_until > now && !others_in_flight(scheduler, lease->holder))
        lease->others_until = now;
}

static double sum_claims(const struct scheduler *scheduler)
{
    double ns = 0;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *slice = SLICE(scheduler, i);

        for (guint j = 0; j < slice->members->len; j++)
            ns += (double)MEMBER(slice, j)->claim_ns;
    }
    return ns;
}

/* Charges @part of @member's claim, unless it has ended that much since and paid for it. */
static void settle_one(struct scheduler *scheduler, struct sched_member *member, double part)
{
    uint64_t due = (uint64_t)((double)member->claim_ns * part);
    uint64_t paid = member->charged_ns - member->claim_base;

    member->claim_ns = 0;
    if (due <= paid)
        return;
    account_charge(scheduler, member, due - paid);
    member->advance_ns += due - paid;
}

/*
 * The holder is charged less by this time, so the members that reported work in flight are charged
 * for it. It is an advance: when that work ends, so much of it is paid. If the report was a lie,
 * the lie is paid for.
 */
void holder_settle(struct scheduler *scheduler, uint64_t now)
{
    const struct lease *lease = &scheduler->lease;
    double behind = (double)MIN(now, lease->others_until) - (double)lease->granted_at;
    double claimed = sum_claims(scheduler);

    if (!lease->holder || is_in_turn(lease) || behind <= 0 || claimed <= 0)
        return;
    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *slice = SLICE(scheduler, i);

        for (guint j = 0; j < slice->members->len; j++)
            settle_one(scheduler, MEMBER(slice, j), MIN(behind / claimed, 1));
    }
}

/*
 * How long the GPU will still run work that others had in flight before the lease, or that the
 * holder had queued when it was free, as far as known.
 * Not for a lease in a pipeline, which is given just before the end of that work.
 */
uint64_t holder_behind(const struct scheduler *scheduler, uint64_t now)
{
    const struct lease *lease = &scheduler->lease;

    uint64_t own = slice_backlog(lease->holder);

    if (now >= lease->others_until || is_in_turn(lease) ||
        !others_in_flight(scheduler, lease->holder))
        return own;
    return MAX(lease->others_until - now, own);
}

/*
 * How long the GPU has run the holder's work in flight: it may have had to end others' work before.
 */
uint64_t holder_elapsed(const struct scheduler *scheduler, uint64_t now)
{
    const struct sample *sample = &scheduler->lease.holder->sample;
    uint64_t since = MAX(MAX(sample->began_at_ns, sample->ended_at_ns), scheduler->ended_at);

    if (!sample->in_flight_ns || holder_behind(scheduler, now))
        return 0;
    return now > since ? now - since : 0;
}

bool holder_others_ran(const struct scheduler *scheduler, uint64_t since)
{
    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *slice = SLICE(scheduler, i);

        if (slice != scheduler->lease.holder &&
            (slice->in_flight_ns || slice->sample.ended_at_ns > since))
            return true;
    }
    return false;
}

/* When the holder's work in flight should have ended. */
uint64_t holder_expected_end(const struct scheduler *scheduler, uint64_t now)
{
    return now + holder_behind(scheduler, now) - holder_elapsed(scheduler, now) +
           scheduler->lease.holder->sample.in_flight_ns;
}

/* What the holder has used and is about to use. */
uint64_t holder_spent(const struct scheduler *scheduler, uint64_t now)
{
    const struct sample *sample = &scheduler->lease.holder->sample;

    return sample->gpu_ns + MAX(sample->in_flight_ns, holder_elapsed(scheduler, now));
}

/* What the GPU has executed of it by now. */
double holder_executed(const struct scheduler *scheduler, uint64_t now)
{
    const struct sched_slice *holder = scheduler->lease.holder;
    uint64_t elapsed = MIN(holder_elapsed(scheduler, now), holder->sample.in_flight_ns);

    return (double)holder->gpu_ns + (double)elapsed;
}

/* When the submission that uses up the lease ends, as far as is known. */
uint64_t holder_last_end(const struct scheduler *scheduler, uint64_t now)
{
    const struct sched_slice *holder = scheduler->lease.holder;
    const struct sample *sample = &holder->sample;
    uint64_t running = MIN(holder_elapsed(scheduler, now), sample->in_flight_ns);
    uint64_t spent = holder_spent(scheduler, now), limit = scheduler->lease.limit_ns;
    uint64_t left = limit > spent ? limit - spent : 0;
    uint64_t batch = MAX((uint64_t)holder->batch_ns, NS_PER_US);
    /* A mean is no guarantee: better one too few, and another look. */
    uint64_t count = left ? MAX((left + 3 * batch / 4) / batch, 1) : 0;
    double pauses = (double)count * holder->think.mean_ns;

    return now + holder_behind(scheduler, now) + sample->in_flight_ns - running + count * batch +
           (uint64_t)MIN(pauses, NOTICE_NS / 2.0);
}
