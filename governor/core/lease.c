// SPDX-License-Identifier: MIT
#include "scheduler_parts.h"

/* If others wait, a lease ends after this time even if it is not used up. */
static uint64_t lease_most(const struct lease *lease)
{
    return 2 * lease->quantum_ns + GRACE_NS;
}

/* All that the holder's slice has used and is about to use. */
static double slice_spent(const struct sched_slice *slice)
{
    return (double)slice->gpu_ns + (double)slice->in_flight_ns;
}

/*
 * The holder is charged for time that the GPU was kept for it while others waited, except for
 * pauses that are short beside its work. Otherwise a slice that submits little and pauses long
 * would hold the GPU for much longer than it uses it. A cap counts GPU time only.
 */
static void charge_pauses(struct scheduler *scheduler, uint64_t now)
{
    struct lease *lease = &scheduler->lease;
    struct sched_slice *slice = lease->holder;
    double used = holder_executed(scheduler, now) - lease->contested_base;
    double excess = (double)(now - lease->contested_at) - used - used / 4;

    if (excess > 0)
        slice->virtual_ns += excess / slice_weight(scheduler, slice);
}

/* Others wait from now on, or do not any more. */
static void set_contested(struct scheduler *scheduler, bool contested, uint64_t now)
{
    struct lease *lease = &scheduler->lease;

    if (contested == lease->contested)
        return;
    lease->contested = contested;
    lease->contested_at = now;
    lease->contested_base = holder_executed(scheduler, now);
}

/*
 * While others wait, the GPU that is kept for work that was expected and has not come counts
 * against a cap as if it were used: else a capped slice could keep it from lower classes for ever.
 */
static void charge_expected(struct scheduler *scheduler, uint64_t now)
{
    struct lease *lease = &scheduler->lease;

    if (!lease->expected || lease->begun || !lease->holder->capped)
        return;
    budget_spend(&lease->holder->cap, (double)(now - lease->kept_from));
    lease->kept_from = now;
}

/*
 * What a lower class had by others' choice counts against its minimum. Otherwise it could save that
 * up until a higher class comes. Only what it had by its minimum is owed.
 */
static void charge_floor(struct scheduler *scheduler, uint64_t now)
{
    struct lease *lease = &scheduler->lease;
    double saved = budget_balance(&scheduler->floor, now);
    double spent = slice_spent(lease->holder) - lease->floor_base;

    if (!lease->floor)
        spent = CLAMP(saved, 0, spent);
    budget_spend(&scheduler->floor, spent);
}

/*
 * What is in flight belongs to the turn. It takes twice as long if the GPU runs another slice's
 * work beside it. What takes longer than the holder said does not, nor what would be longer than
 * anything that the slice was charged for of late: else a slice could pay for others for as long as
 * it likes, by what it says to have in flight.
 */
static void end_turn(struct scheduler *scheduler, uint64_t now)
{
    struct sched_slice *holder = scheduler->lease.holder;
    uint64_t end = MAX(holder_expected_end(scheduler, now), now);
    uint64_t tail = MIN(end - now, MAX((uint64_t)holder->paid_ns, DEPTH_STEADY_NS));

    account_turn(holder, scheduler->lease.granted_at, now + 2 * tail + NOTICE_NS);
}

void lease_end(struct scheduler *scheduler, uint64_t now)
{
    struct lease *lease = &scheduler->lease;
    struct sched_slice *holder = lease->holder;

    if (holder)
        end_turn(scheduler, now);
    holder_settle(scheduler, now);
    if (lease->contested)
        charge_pauses(scheduler, now);
    if (lease->contested)
        charge_expected(scheduler, now);
    if (holder && contend_outranked(scheduler, holder))
        charge_floor(scheduler, now);
    *lease = (struct lease){.state = LEASE_NONE};
}

static uint64_t quantum_of(struct scheduler *scheduler, struct sched_slice *slice, bool floor,
                           uint64_t now)
{
    uint64_t most =
        contend_has_rivals(scheduler, slice) ? tempo_quantum(scheduler, now) : QUANTUM_ALONE_NS;
    double left;

    if (floor)
        return 1;
    if (!slice->capped)
        return most;
    left = budget_balance(&slice->cap, now) - (double)slice->in_flight_ns;
    if (left < 1)
        return 1;
    return left < (double)most ? (uint64_t)left : most;
}

/*
 * The slice that is next is told this long before the end of @slice's work, so that the GPU stays
 * busy. Nobody may wait for a turn yet: then the time suffices for any of those that may come.
 */
static uint64_t lead_of(struct scheduler *scheduler, const struct sched_slice *slice, uint64_t now)
{
    const struct sched_slice *next = choice_best(scheduler, slice, now);
    uint64_t longest = NOTICE_NS;

    if (next)
        return MAX(longest, handover_lead(&next->handover));
    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *other = SLICE(scheduler, i);

        if (other != slice && other->active)
            longest = MAX(longest, handover_lead(&other->handover));
    }
    return longest;
}

static void grant_to(struct scheduler *scheduler, struct sched_slice *slice, bool floor,
                     uint64_t now)
{
    unsigned priority = slice_priority(scheduler, slice);
    double start = slice_virtual(scheduler, slice);
    struct lease before = scheduler->lease;
    /* It has not come to the last one yet: it was told then, and not again. */
    bool again = before.holder == slice && !before.begun;

    if (scheduler->lease.state != LEASE_NONE)
        lease_end(scheduler, now);
    for (guint i = 0; i < slice->members->len; i++)
        stalls_forget_waiting(MEMBER(slice, i));
    slice_gather(slice);
    scheduler->lease = (struct lease){
        .state = LEASE_OPEN,
        .holder = slice,
        .limit_ns = sample_spent(&slice->sample, now) + quantum_of(scheduler, slice, floor, now),
        .granted_at = now,
        .quantum_ns = tempo_quantum(scheduler, now),
        .lead_ns = handover_lead(&slice->handover),
        .told_at = again ? before.told_at : now,
        .due_at = again ? before.due_at : now - scheduler->late_ns,
        .others_until = holder_others_end(scheduler, slice, now),
        .kept_from = now,
        .expected = !slice->sample.waiting && !slice->sample.in_flight_ns,
        .begun = slice->sample.in_flight_ns > 0,
        .floor = floor,
        .floor_base = slice_spent(slice),
    };
    /* Others may have done nothing yet. No member has run for longer than it has been here. */
    for (guint i = 0; i < slice->members->len; i++)
        MEMBER(slice, i)->behind_until =
            MAX(scheduler->lease.others_until, MEMBER(slice, i)->joined_at);
    /* The minimum is outside the queue, which continues where it was. */
    if (start > scheduler->virtual_ns[priority] && !floor)
        scheduler->virtual_ns[priority] = start;
    slice->served_at = now;
}

static bool grant_next(struct scheduler *scheduler, uint64_t now)
{
    struct sched_slice *lower = choice_floor(scheduler, now);
    struct sched_slice *next = lower ? lower : choice_best(scheduler, NULL, now);

    if (!next)
        return false;
    grant_to(scheduler, next, lower != NULL, now);
    return true;
}

/* A higher class does not wait for the end of a lease or for work in flight. */
static bool preempt_holder(struct scheduler *scheduler, uint64_t now)
{
    struct sched_slice *slice = scheduler->lease.holder;
    struct sched_slice *best = choice_best(scheduler, NULL, now);

    if (!best || slice_priority(scheduler, best) <= slice_priority(scheduler, slice))
        return false;
    if (scheduler->lease.floor && scheduler->lease.state == LEASE_OPEN)
        return false;
    grant_to(scheduler, best, false, now);
    return true;
}

/* Others of its slice may have to wait for their turn within the lease. */
static bool is_waited_for(const struct sched_member *member)
{
    return member->sample.in_flight_ns || (member->sample.waiting && member->goes);
}

/* Whether all members that are waited for may be held up. */
static bool may_be_held_up(const struct sched_slice *slice, uint64_t now)
{
    bool any = false;

    for (guint i = 0; i < slice->members->len; i++) {
        const struct sched_member *member = MEMBER(slice, i);

        if (!is_waited_for(member) || member->silent)
            continue;
        if (now >= member->held_until)
            return false;
        any = true;
    }
    return any;
}

/* It comes to no lease in time: otherwise it, and all others that are like it, never would. */
static bool is_slow(const struct sched_slice *slice)
{
    return slice->missed >= MOST_MISSED;
}

static uint64_t grace_of(const struct sched_slice *slice, uint64_t now)
{
    if (is_slow(slice) && !slice->sample.in_flight_ns)
        return CLAMP(2 * slice->reaction_ns, GRACE_NS, GRACE_MOST_NS);
    if (may_be_held_up(slice, now))
        return slice_batch_part(slice, 4, GRACE_HELD_NS, GRACE_NS);
    return slice_batch_part(slice, 4, GRACE_NS, GRACE_MOST_NS);
}

/*
 * Work of the holder's may be late already when it gets the lease. It needs time to react:
 * otherwise two such slices would take the lease from each other at each report, and neither would
 * ever use it.
 */
#define LEAST_NS (2 * NS_PER_MS)

static uint64_t least_time(const struct sched_slice *holder, uint64_t now)
{
    return may_be_held_up(holder, now) ? 0 : LEAST_NS;
}

/* The holder does not react: it is stopped or hangs, or its work takes far longer than it said. */
static bool take_overrun(struct scheduler *scheduler, uint64_t since, uint64_t now)
{
    struct lease *lease = &scheduler->lease;
    struct sched_slice *holder = lease->holder;
    uint64_t until =
        MAX(since + grace_of(holder, now), lease->granted_at + least_time(holder, now));

    if (now < until) {
        scheduler_call_at(scheduler, until);
        return false;
    }
    for (guint i = 0; i < lease->holder->members->len; i++) {
        struct sched_member *member = MEMBER(lease->holder, i);

        if (!is_waited_for(member) || member->silent)
            continue;
        member->silent = true;
        member->missed_at = since;
        member->missed_lease = !member->sample.in_flight_ns;
    }
    holder->missed += !lease->begun;
    lease_end(scheduler, now);
    slice_gather(holder);
    return true;
}

/*
 * How long it pays to keep the GPU for the holder, which has nothing to do, instead of giving it to
 * @next.
 */
static uint64_t patience_of(struct scheduler *scheduler, struct sched_slice *slice,
                            const struct sched_slice *next, uint64_t now)
{
    unsigned own = slice_priority(scheduler, slice), other = slice_priority(scheduler, next);
    const struct sched_slice *longer = slice->batch_ns > next->batch_ns ? slice : next;
    uint64_t most = MAX(slice_batch_part(longer, 4, PATIENCE_MIN_NS, PATIENCE_MAX_NS),
                        slice_batch_part(longer, 8, 0, PATIENCE_LONG_NS));

    if (own < other ||
        (own == other && slice_virtual(scheduler, slice) >= slice_virtual(scheduler, next)))
        return 0;
    if (!caps_allow(slice, now))
        return 0;
    return think_patience(&slice->think, most);
}

static bool run_idle(struct scheduler *scheduler, struct sched_slice *next, uint64_t now)
{
    struct lease *lease = &scheduler->lease;
    struct sched_slice *slice = lease->holder;
    const struct sample *sample = &slice->sample;
    uint64_t idle_at = MAX(MAX(sample->ended_at_ns, sample->began_at_ns), lease->granted_at);
    uint64_t wait;

    if (!lease->floor) {
        wait = patience_of(scheduler, slice, next, now);
        if (wait && now < idle_at + wait) {
            lease->limit_ns =
                MAX(lease->limit_ns, sample->gpu_ns + quantum_of(scheduler, slice, false, now));
            lease->state = LEASE_KEPT;
            lease->idle_at = idle_at;
            lease->kept_until = idle_at + wait;
            return true;
        }
    }
    /* Its work waits for something: it only needs its next turn soon. */
    if (slice_spent(slice) <= lease->floor_base)
        scheduler->paused_at = now;
    lease_end(scheduler, now);
    return true;
}

/* It may have been given before anybody else was there, or while nobody returned. */
static void shorten_lease(struct scheduler *scheduler, uint64_t now)
{
    struct lease *lease = &scheduler->lease;
    uint64_t most;

    lease->quantum_ns = MIN(lease->quantum_ns, tempo_quantum(scheduler, now));
    /* By its own count, which goes on while its work waits for something else than the GPU. */
    most = MAX(holder_spent(scheduler, now), sample_spent(&lease->holder->sample, now)) +
           lease->quantum_ns;
    if (lease->limit_ns > most)
        lease->limit_ns = most;
}

static void plan_look(struct scheduler *scheduler, uint64_t at)
{
    scheduler->lease.looks_at = at;
    scheduler_call_at(scheduler, at);
}

/*
 * While others contend, nobody needs to report that it waits as long as the holder works. A holder
 * that queues submissions has more at the end, so the next is told before it. A holder that waits
 * for each end has nothing in flight then, and reports that.
 */
static void look_at_end(struct scheduler *scheduler, uint64_t now)
{
    const struct lease *lease = &scheduler->lease;
    bool works = lease->holder->sample.in_flight_ns || !lease->begun;
    uint64_t end, at;

    if (!works || lease->floor || !contend_has_rivals(scheduler, lease->holder))
        return;
    end = holder_last_end(scheduler, now);
    at = lease->holder->queues ? end - lead_of(scheduler, lease->holder, now) : end + NOTICE_NS;
    if (at > now + NOTICE_NS)
        plan_look(scheduler, MIN(at, now + lease_most(lease)));
}

static void drain_lease(struct lease *lease, uint64_t now)
{
    lease->state = LEASE_DRAINING;
    lease->drained_from = now;
    lease->drained_until =
        now + lease->holder->sample.in_flight_ns + 2 * grace_of(lease->holder, now);
}

static bool run_used_up(struct scheduler *scheduler, uint64_t now)
{
    struct lease *lease = &scheduler->lease;
    struct sched_slice *holder = lease->holder, *next = choice_best(scheduler, NULL, now);

    if (!next) {
        if (!holder->sample.in_flight_ns)
            lease_end(scheduler, now);
        return false;
    }
    /* Before it has to ask, if its turn is next; but not while it is held up again. */
    if ((next == holder || patience_of(scheduler, holder, next, now)) &&
        !choice_floor(scheduler, now)) {
        if (holder->sample.in_flight_ns && may_be_held_up(holder, now) &&
            choice_best(scheduler, holder, now) &&
            take_overrun(scheduler, holder_expected_end(scheduler, now), now))
            return true;
        grant_to(scheduler, holder, false, now);
        look_at_end(scheduler, now);
        scheduler_call_at(scheduler, now + lease_most(lease));
        return false;
    }
    drain_lease(lease, now);
    return true;
}

/* The work in flight is the last of the lease. */
static bool used_up(const struct scheduler *scheduler, uint64_t now)
{
    const struct sample *sample = &scheduler->lease.holder->sample;

    return holder_spent(scheduler, now) >= scheduler->lease.limit_ns &&
           (sample->in_flight_ns || sample->waiting);
}

/*
 * When the holder first used the lease. What it submitted then may have ended by now, and so may
 * what it did after that. By members that do not tell: when the last of it began.
 */
static uint64_t came_at(const struct lease *lease)
{
    uint64_t first = UINT64_MAX;

    for (guint i = 0; i < lease->holder->members->len; i++) {
        uint64_t at = MEMBER(lease->holder, i)->sample.came_at_ns;

        if (at >= lease->told_at)
            first = MIN(first, at);
    }
    return MIN(first, lease->holder->sample.began_at_ns);
}

/* The first submission under the lease. */
static void learn_begin(struct lease *lease)
{
    const struct sample *sample = &lease->holder->sample;
    bool begins = sample->began_at_ns > lease->granted_at;

    if (!lease->begun && begins && !lease->expected) {
        uint64_t at = came_at(lease);

        handover_learn(&lease->holder->handover, at - lease->due_at);
        if (at < lease->told_at + GRACE_NS)
            lease->holder->missed = 0;
    }
    lease->begun |= sample->in_flight_ns || begins;
}

/* Whether the next submission is there before the end of the previous one. */
static void learn_queues(const struct scheduler *scheduler, uint64_t now)
{
    const struct lease *lease = &scheduler->lease;
    struct sched_slice *holder = lease->holder;
    const struct sample *sample = &holder->sample;

    if (sample->in_flight_ns && used_up(scheduler, now))
        holder->queues = sample->waiting;
    else if (!sample->in_flight_ns && lease->begun)
        holder->queues = sample->waiting && sample->waiting_at_ns + NOTICE_NS < sample->ended_at_ns;
}

/*
 * The next is not told before the end. Otherwise both would be measured while they share the GPU,
 * and that would favour a slice with many leases in a row.
 */
static bool ends_first(const struct scheduler *scheduler, uint64_t now)
{
    const struct sched_slice *holder = scheduler->lease.holder;

    return holder->sample.in_flight_ns && !holder->queues &&
           now < holder_expected_end(scheduler, now) + NOTICE_NS;
}

/* All its work in flight waits for something else, and nobody else has work for the lease. */
static bool is_stalled(const struct sched_slice *slice)
{
    bool any = false;

    for (guint i = 0; i < slice->members->len; i++) {
        const struct sched_member *member = MEMBER(slice, i);

        if (!member->silent && member->sample.waiting)
            return false;
        any |= member->stalled;
    }
    return any && !slice->sample.in_flight_ns;
}

/* Whether the GPU is kept for work of the holder's that is expected, while only lower classes wait.
 */
static bool is_expected(struct scheduler *scheduler, const struct sched_slice *other, uint64_t now)
{
    struct sched_slice *holder = scheduler->lease.holder;

    if (holder->sample.waiting || holder->sample.in_flight_ns || now >= holder->expected_until ||
        slice_priority(scheduler, other) >= slice_priority(scheduler, holder) ||
        choice_floor(scheduler, now))
        return false;
    charge_expected(scheduler, now);
    if (holder->capped && budget_balance(&holder->cap, now) <= 0)
        return false;
    scheduler_call_at(scheduler, holder->expected_until);
    return true;
}

static bool run_open(struct scheduler *scheduler, uint64_t now)
{
    struct lease *lease = &scheduler->lease;
    const struct sample *sample = &lease->holder->sample;
    struct sched_slice *other;

    if (preempt_holder(scheduler, now))
        return true;
    learn_begin(lease);
    learn_queues(scheduler, now);
    if (used_up(scheduler, now) && !ends_first(scheduler, now))
        return run_used_up(scheduler, now);
    other = choice_best(scheduler, lease->holder, now);
    set_contested(scheduler, other != NULL, now);
    if (!other) {
        look_at_end(scheduler, now);
        return false;
    }
    if (is_expected(scheduler, other, now))
        return false;
    /* It has not come. */
    if (is_stalled(lease->holder) || (lease->expected && !lease->begun && !sample->waiting)) {
        lease_end(scheduler, now);
        return true;
    }
    shorten_lease(scheduler, now);
    if (now >= lease->contested_at + lease_most(lease))
        return run_used_up(scheduler, now);
    scheduler_call_at(scheduler, lease->contested_at + lease_most(lease));
    look_at_end(scheduler, now);
    if (sample->in_flight_ns)
        return take_overrun(scheduler, holder_expected_end(scheduler, now), now);
    if (lease->begun && !sample->waiting)
        return run_idle(scheduler, other, now);
    /* It was held up by an estimate that has turned out too long. */
    for (guint i = 0; i < lease->holder->members->len; i++)
        MEMBER(lease->holder, i)->changed |= MEMBER(lease->holder, i)->sample.waiting;
    return take_overrun(scheduler, MAX(lease->granted_at, sample->ended_at_ns), now);
}

static bool run_kept(struct scheduler *scheduler, uint64_t now)
{
    struct lease *lease = &scheduler->lease;
    const struct sample *sample = &lease->holder->sample;

    if (preempt_holder(scheduler, now))
        return true;
    if (sample->began_at_ns > lease->idle_at) {
        lease->state = LEASE_OPEN;
        return true;
    }
    if (now >= lease->kept_until) {
        lease_end(scheduler, now);
        return true;
    }
    scheduler_call_at(scheduler, lease->kept_until);
    return false;
}

static bool run_draining(struct scheduler *scheduler, uint64_t now)
{
    struct lease *lease = &scheduler->lease;
    uint64_t end = holder_expected_end(scheduler, now);
    uint64_t ahead = lead_of(scheduler, lease->holder, now);

    if (preempt_holder(scheduler, now))
        return true;
    if (!lease->holder->sample.in_flight_ns) {
        lease_end(scheduler, now);
        return true;
    }
    if (now + ahead < end && now < lease->drained_until) {
        plan_look(scheduler, MIN(end - ahead, lease->drained_until));
        return false;
    }
    if (now < end && now < lease->drained_until) {
        lease_end(scheduler, now);
        return true;
    }
    /* The GPU has run others' work meanwhile: the holder is not late, but nobody waits for it. */
    if (now >= lease->drained_until && holder_others_ran(scheduler, lease->drained_from)) {
        lease_end(scheduler, now);
        return true;
    }
    /* Whatever it reports about the start of its work. */
    return take_overrun(scheduler, MIN(end, lease->drained_until - grace_of(lease->holder, now)),
                        now);
}

static bool step_lease(struct scheduler *scheduler, uint64_t now)
{
    switch (scheduler->lease.state) {
    case LEASE_NONE:
        return grant_next(scheduler, now);
    case LEASE_OPEN:
        return run_open(scheduler, now);
    case LEASE_KEPT:
        return run_kept(scheduler, now);
    default:
        return run_draining(scheduler, now);
    }
}

uint64_t lease_looks_at(const struct scheduler *scheduler, const struct sched_member *member)
{
    const struct lease *lease = &scheduler->lease;

    /*
     * A look does not notice a silent member. A higher class need not wait for a look. A member
     * that returns need not wait for the look of a long lease.
     */
    if (lease->state == LEASE_NONE || member->silent ||
        (lease->quantum_ns > QUANTUM_NS && !member->slice->active) ||
        slice_priority(scheduler, member->slice) > slice_priority(scheduler, lease->holder))
        return 0;
    return lease->looks_at;
}

void lease_run(struct scheduler *scheduler, uint64_t now)
{
    scheduler->lease.looks_at = 0;
    holder_note_others_end(scheduler, now);
    if (scheduler->free)
        return;
    while (step_lease(scheduler, now))
        ;
}
