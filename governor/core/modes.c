// SPDX-License-Identifier: MIT
#include "scheduler_parts.h"

static void retire_idle(struct scheduler *scheduler, uint64_t now)
{
    for (guint i = 0; i < scheduler->slices->len; i++) {
        struct sched_slice *slice = SLICE(scheduler, i);

        slice->active = contend_is_active(slice, now);
    }
}

/*
 * Whether another slice of its class has exceeded its share by more than a lease and a submission.
 * @slice stays metered until it has caught up: free use is not counted, so the debt would never be
 * paid.
 */
static bool is_owed(const struct scheduler *scheduler, const struct sched_slice *slice,
                    uint64_t now)
{
    unsigned priority = slice_priority(scheduler, slice);

    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *other = SLICE(scheduler, i);
        double lead =
            (other->virtual_ns - scheduler->virtual_ns[priority]) * slice_weight(scheduler, other);

        if (other != slice && slice_priority(scheduler, other) == priority &&
            lead > (double)tempo_quantum(scheduler, now) + other->batch_ns)
            return true;
    }
    return false;
}

/*
 * Free submissions cannot be held up. So a slice is not free if a higher class may interrupt it at
 * any time, or if it has a cap.
 */
static bool may_be_free(const struct scheduler *scheduler, const struct sched_slice *slice,
                        uint64_t now)
{
    return !slice->capped && !contend_outranked(scheduler, slice) && slice_members(slice) > 0 &&
           !is_owed(scheduler, slice, now);
}

/* The only active slice; if none is active, the only one that has members. */
static struct sched_slice *only_one(const struct scheduler *scheduler)
{
    bool any = contend_active(scheduler) > 0;
    struct sched_slice *only = NULL;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        struct sched_slice *slice = SLICE(scheduler, i);

        if (any ? !slice->active : !slice_members(slice))
            continue;
        if (only)
            return NULL;
        only = slice;
    }
    return only;
}

static void end_freedom(struct scheduler *scheduler, uint64_t now)
{
    struct sched_slice *slice = scheduler->free;
    double clock = scheduler->virtual_ns[slice_priority(scheduler, slice)];
    uint64_t backlog_ns = 0;

    scheduler->free = NULL;
    slice->active = slice_members(slice) > 0;
    slice->busy_at = now;
    /* Its free use was not counted, so no time is owed to it. */
    slice->virtual_ns = MAX(slice->virtual_ns, clock);
    /* Others wait for what it has queued. */
    for (guint i = 0; i < slice->members->len; i++) {
        account_charge(scheduler, MEMBER(slice, i), MEMBER(slice, i)->sample.backlog_ns);
        backlog_ns += MEMBER(slice, i)->sample.backlog_ns;
    }
    account_turn(slice, scheduler->free_since, now + 2 * backlog_ns + NOTICE_NS);
}

void modes_update(struct scheduler *scheduler, uint64_t now)
{
    struct sched_slice *only;

    retire_idle(scheduler, now);
    if (scheduler->free &&
        (contend_active(scheduler) > 0 || !may_be_free(scheduler, scheduler->free, now)))
        end_freedom(scheduler, now);
    if (scheduler->free)
        return;
    only = only_one(scheduler);
    if (!only || !may_be_free(scheduler, only, now))
        return;
    lease_end(scheduler, now);
    only->active = false;
    rest_end_all(only);
    scheduler->free = only;
    scheduler->free_since = now;
}
