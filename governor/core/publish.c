// SPDX-License-Identifier: MIT
/* The grants: what each member may do. */
#include "scheduler_parts.h"

/* A lowered limit lets no waiting thread go on. */
static void set_limit(struct sched_member *member, uint64_t limit_ns)
{
    _Atomic uint64_t *word = &member->grant->limit_ns;

    if (limit_ns > atomic_load_explicit(word, memory_order_relaxed))
        member->changed = true;
    atomic_store_explicit(word, limit_ns, memory_order_release);
}

static void set_word(struct sched_member *member, _Atomic uint32_t *word, uint32_t value)
{
    if (atomic_load_explicit(word, memory_order_relaxed) == value)
        return;
    atomic_store_explicit(word, value, memory_order_release);
    member->changed = true;
}

/* What @slice may have of the GPU if all that contend now continue, in millionths. */
static uint32_t share_ppm(const struct scheduler *scheduler, const struct sched_slice *slice)
{
    double own = slice_weight(scheduler, slice), sum = own;
    double share = 1;

    if (scheduler->free != slice) {
        for (guint i = 0; i < scheduler->slices->len; i++) {
            const struct sched_slice *other = SLICE(scheduler, i);

            if (other != slice && (other->active || other == scheduler->free))
                sum += slice_weight(scheduler, other);
        }
        share = own / sum;
    }
    if (slice->capped && share > slice->cap.rate)
        share = slice->cap.rate;
    return (uint32_t)(share * 1e6);
}

/*
 * How far @member may go by its own count: as far as the slice may, without what the slice's other
 * members use. So each of them may use all that is left. The engine gives them no more than the
 * time that passes, and the arbiter looks when that is used up.
 */
static uint64_t limit_of(const struct scheduler *scheduler, const struct sched_member *member,
                         uint64_t now)
{
    uint64_t limit = scheduler->lease.limit_ns + sample_spent(&member->sample, now);
    uint64_t spent = sample_spent(&member->slice->sample, now);

    return limit > spent ? limit - spent : 0;
}

/* Whether other slices have members, which may begin to work at any time. */
static bool has_others(const struct scheduler *scheduler, const struct sched_slice *slice)
{
    for (guint i = 0; i < scheduler->slices->len; i++) {
        if (SLICE(scheduler, i) != slice && slice_members(SLICE(scheduler, i)))
            return true;
    }
    return false;
}

/* Lower classes use the engine, and @slice need not wait for their leases to end. */
static bool may_preempt(const struct scheduler *scheduler, const struct sched_slice *slice)
{
    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *other = SLICE(scheduler, i);

        if (other->active && slice_priority(scheduler, other) < slice_priority(scheduler, slice))
            return true;
    }
    return false;
}

static void publish_grant(struct scheduler *scheduler, struct sched_member *member, uint32_t share,
                          bool rivals, uint64_t depth, uint64_t now)
{
    struct sched_slice *slice = member->slice;
    struct governor_class_grant *grant = member->grant;
    bool free = scheduler->free == slice && !member->away;
    bool holds = scheduler->lease.holder == slice;
    bool open = holds && !member->away && scheduler->lease.state != LEASE_DRAINING;

    atomic_store_explicit(&grant->depth_ns, depth, memory_order_relaxed);
    atomic_store_explicit(
        &grant->contended,
        holds && (rivals || scheduler->lease.contested || slice->throttled || slice->crowded),
        memory_order_relaxed);
    atomic_store_explicit(&grant->looks_at_ns, lease_looks_at(scheduler, member),
                          memory_order_release);
    atomic_store_explicit(&grant->others_until_ns, holds ? scheduler->lease.others_until : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&grant->backlog_ns,
                          has_others(scheduler, slice) ? BACKLOG_NS : BACKLOG_ALONE_NS,
                          memory_order_relaxed);
    set_limit(member, open && member->goes ? limit_of(scheduler, member, now) : 0);
    set_word(member, &grant->throttled, slice->throttled);
    set_word(member, &grant->mode, free ? GOVERNOR_MODE_FREE : GOVERNOR_MODE_METERED);
    /* Members read it when there is no arbiter. */
    atomic_store_explicit(&grant->share_ppm, share, memory_order_relaxed);
}

/* The highest class that has members. */
static unsigned top_priority(const struct scheduler *scheduler)
{
    unsigned top = 0;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *slice = SLICE(scheduler, i);

        if (slice_members(slice))
            top = MAX(top, slice_priority(scheduler, slice));
    }
    return top;
}

/* When @slice becomes idle, if it only ends its work in flight from now on. */
static uint64_t idle_at(const struct sched_slice *slice, uint64_t now)
{
    uint64_t remaining = 0;

    for (guint i = 0; i < slice->members->len; i++)
        remaining += sample_remaining(&MEMBER(slice, i)->sample, now);
    return slice->busy_at + contend_idle_after(slice) + MIN(remaining, IDLE_AFTER_MOST_NS);
}

/*
 * Needed to notice who has become idle, if another could be free for it: below the highest class
 * nobody is. A slice that waits is not idle until its turn comes.
 */
static void call_when_idle(struct scheduler *scheduler, uint64_t now)
{
    unsigned top = top_priority(scheduler);
    guint active_top = 0;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *slice = SLICE(scheduler, i);

        active_top += slice->active && slice_priority(scheduler, slice) == top;
    }
    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *slice = SLICE(scheduler, i);
        bool is_top = slice_priority(scheduler, slice) == top;

        if (slice->active && !slice->wanting && active_top > is_top)
            scheduler_call_at(scheduler, idle_at(slice, now));
    }
}

void publish_grants(struct scheduler *scheduler, uint64_t now)
{
    call_when_idle(scheduler, now);
    for (guint i = 0; i < scheduler->slices->len; i++) {
        struct sched_slice *slice = SLICE(scheduler, i);
        uint64_t depth;
        uint32_t share;
        bool rivals, above;

        /* Each comes to all slices again: there may be thousands without a process. */
        if (!slice->members->len)
            continue;
        share = share_ppm(scheduler, slice);
        rivals = contend_has_rivals(scheduler, slice);
        depth = crowd_choose(scheduler, slice, now);
        above = may_preempt(scheduler, slice);
        if (slice->wanting && slice->throttled)
            scheduler_call_at(scheduler, caps_when(slice, now));
        for (guint j = 0; j < slice->members->len; j++) {
            publish_grant(scheduler, MEMBER(slice, j), share, rivals, depth, now);
            if (MEMBER(slice, j)->preempts)
                atomic_store_explicit(MEMBER(slice, j)->preempts, above, memory_order_relaxed);
        }
    }
}
