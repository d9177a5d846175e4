// SPDX-License-Identifier: MIT
/*
 * What members pay. Where it is known from when until when the GPU worked for them, time that
 * several of them used at once is divided among them. The rest is charged as they say, up to the
 * time that has passed.
 */
#include "scheduler.h"
#include "scheduler_parts.h"
#include "spans.h"

/* What was given back earlier was counted already. */
static uint64_t without_returned(struct sched_slice *slice, uint64_t ns)
{
    double returned = MIN((double)ns, slice->returned_ns);

    slice->returned_ns -= returned;
    return ns - (uint64_t)returned;
}

static void charge_slice(struct scheduler *scheduler, struct sched_slice *slice, uint64_t ns)
{
    /* Use of what nobody else wanted is not charged. */
    if (scheduler->free != slice)
        slice->virtual_ns += (double)ns / slice_weight(scheduler, slice);
    if (slice->capped)
        budget_spend(&slice->cap, (double)ns);
}

void account_charge(struct scheduler *scheduler, struct sched_member *member, uint64_t ns)
{
    struct sched_slice *slice = member->slice;

    member->charged_ns += ns;
    slice->gpu_ns += without_returned(slice, ns);
    charge_slice(scheduler, slice, ns);
}

/* Of what it owes already, beyond the slice that is served now. */
static double debt_of(struct scheduler *scheduler, const struct sched_slice *slice)
{
    double ahead = slice->virtual_ns - scheduler->virtual_ns[slice_priority(scheduler, slice)];

    return MAX(ahead, 0) * slice_weight(scheduler, slice);
}

void scheduler_charge(struct scheduler *scheduler, struct sched_slice *slice, uint64_t ns)
{
    double most = GOVERNOR_IN_FLIGHT_MOST_NS - debt_of(scheduler, slice);

    if (slice->capped)
        most = MIN(most, GOVERNOR_IN_FLIGHT_MOST_NS + slice->cap.balance_ns);
    if (most > 0)
        charge_slice(scheduler, slice, (uint64_t)MIN((double)ns, most));
}

/* Minus what was charged in advance. */
void account_use(struct scheduler *scheduler, struct sched_member *member, uint64_t ns)
{
    uint64_t paid = MIN(ns, member->advance_ns);

    member->advance_ns -= paid;
    account_charge(scheduler, member, ns - paid);
}

static void give_back(struct scheduler *scheduler, struct sched_slice *slice, double ns)
{
    slice->returned_ns += ns;
    if (scheduler->free != slice) {
        slice->virtual_ns -= ns / slice_weight(scheduler, slice);
        /* Nor did its submissions take so long. */
        slice->recent_ns -= ns;
    }
    if (slice->capped)
        budget_spend(&slice->cap, -ns);
}

/* A new span of @member. */
struct span_charge {
    struct scheduler *scheduler;
    struct sched_member *member;
    double ns;
};

/* Others ran at the same time: @member pays its part, and they get back as much. */
static void on_span(void *data, uint32_t number, double ns)
{
    struct span_charge *charge = data;
    struct scheduler *scheduler = charge->scheduler;

    if (ns > 0) {
        charge->ns += ns;
        return;
    }
    for (guint i = 0; i < scheduler->slices->len; i++) {
        if (SLICE(scheduler, i)->number == number)
            give_back(scheduler, SLICE(scheduler, i), -ns);
    }
}

/* Of a time that is forgotten nobody knows with whom to divide it: it is charged whole. */
static void on_turn(void *data, uint64_t begin_at, uint64_t end_at)
{
    struct span_charge *charge = data;
    uint64_t divided = timeline_add(&charge->scheduler->timeline, charge->member->slice->number,
                                    begin_at, end_at, on_span, charge);

    charge->ns += (double)(end_at - begin_at - divided);
    charge->member->covered_ns += end_at - begin_at;
}

static void on_charged_whole(void *data, uint64_t begin_at, uint64_t end_at)
{
    ((struct span_charge *)data)->ns += (double)(end_at - begin_at);
}

/*
 * What a slice says of a time that it had no turn in takes nothing off others: it pays for all of
 * it, once for all of its processes. So nobody can pay for others with more than its own turns,
 * which it has by its share and its cap.
 */
static void on_no_turn(void *data, uint64_t begin_at, uint64_t end_at)
{
    struct span_charge *charge = data;
    struct coverage *alone = &charge->member->slice->alone;

    coverage_add(alone, begin_at, end_at, on_charged_whole, charge);
    charge->member->covered_ns += end_at - begin_at;
}

static void on_new_time(void *data, uint64_t begin_at, uint64_t end_at)
{
    const struct span_charge *charge = data;

    coverage_divide(&charge->member->slice->turns, begin_at, end_at, on_turn, on_no_turn, data);
}

/* A turn that lasts still. */
static void note_turn(struct scheduler *scheduler, struct sched_slice *slice, uint64_t now)
{
    if (scheduler->lease.holder == slice)
        account_turn(slice, scheduler->lease.granted_at, now);
    if (scheduler->free == slice)
        account_turn(slice, scheduler->free_since, now);
}

void account_turn(struct sched_slice *slice, uint64_t from, uint64_t until)
{
    coverage_add(&slice->turns, from, until, NULL, NULL);
}

/*
 * The holder's first work under its lease begins, which was on the GPU when another slice's ended:
 * what is between them is the GPU's.
 */
static void learn_handover(struct scheduler *scheduler, const struct sched_member *member,
                           uint64_t begin_at)
{
    struct lease *lease = &scheduler->lease;
    uint32_t to = member->slice->number;
    const struct timeline_segment *before;

    if (lease->holder != member->slice || lease->seen || begin_at < lease->granted_at)
        return;
    lease->seen = true;
    before = timeline_before(&scheduler->timeline, begin_at);
    if (before && before->end_at >= member->sample.began_at_ns && !timeline_has(before, to))
        gpu_handover_learn(&scheduler->handover, before->parts[0].slice, to,
                           begin_at - before->end_at);
}

/*
 * The last span is read again, because it may have become longer. What was charged of it is not
 * charged again, even if it is forgotten meanwhile.
 */
static uint64_t span_known_until(const struct sched_member *member, uint64_t begin_at)
{
    const struct coverage_span *last = &member->last_span;

    return begin_at == last->begin_at ? MAX(begin_at, last->end_at) : begin_at;
}

/* What the member's new spans cost: less than they are long if others pay a part. */
static uint64_t charge_spans(struct scheduler *scheduler, struct sched_member *member, uint64_t now)
{
    struct span_charge charge = {.scheduler = scheduler, .member = member};
    struct span_reader reader;
    uint64_t begin_at, end_at;

    spans_begin(&reader, member->usage, member->spans, member->joined_at, now);
    member->spans = reader.count;
    while (spans_next(&reader, &begin_at, &end_at)) {
        note_turn(scheduler, member->slice, now);
        learn_handover(scheduler, member, begin_at);
        coverage_add(&member->coverage, span_known_until(member, begin_at), end_at, on_new_time,
                     &charge);
        member->last_span = (struct coverage_span){begin_at, end_at};
    }
    return (uint64_t)charge.ns;
}

/* Work can end after the clock was read and before the page is. It is charged at the next look. */
#define UNPAID_MOST_NS NS_PER_MS

/*
 * The member can write anything to its page. GPU time is believed up to the elapsed time, however
 * many queues the member adds up. Work may have begun long before the last look, so time counts
 * from the end of the work before it. A member with nothing in flight can save up ten seconds at
 * most.
 */
static uint64_t believe_work(struct sched_member *member, uint64_t said_ns, uint64_t now)
{
    const struct sample *sample = &member->sample;
    uint64_t owed = said_ns + member->unpaid_ns;
    uint64_t used = MIN(owed, now - MIN(now, member->paid_until));

    member->unpaid_ns = MIN(owed - used, UNPAID_MOST_NS);
    member->paid_until += used;
    if (used)
        member->paid_until = MAX(member->paid_until, sample->counted_until_ns);
    if (!sample->in_flight_ns && now > GOVERNOR_IN_FLIGHT_MOST_NS)
        member->paid_until = MAX(member->paid_until, now - GOVERNOR_IN_FLIGHT_MOST_NS);
    return used;
}

uint64_t account_look(struct scheduler *scheduler, struct sched_member *member, uint64_t said_ns,
                      uint64_t now)
{
    uint64_t used = charge_spans(scheduler, member, now);
    uint64_t believed = believe_work(member, said_ns, now);
    uint64_t covered = MIN(believed, member->covered_ns);

    member->covered_ns -= covered;
    used += believed - covered;
    account_use(scheduler, member, used);
    return used;
}
