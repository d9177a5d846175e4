// SPDX-License-Identifier: MIT
#include "scheduler_parts.h"

static guint count_inhabited(const struct scheduler *scheduler)
{
    guint count = 0;

    for (guint i = 0; i < scheduler->slices->len; i++)
        count += slice_members(SLICE(scheduler, i)) > 0;
    return count;
}

/* 1: no cap. */
static double rate_of(const struct scheduler *scheduler, const struct sched_slice *slice,
                      guint present)
{
    switch (scheduler->policy) {
    case POLICY_EQUAL:
        return present > 1 ? 1.0 / present : 1;
    case POLICY_FIXED:
        return slice->settings.share_ppm ? slice->settings.share_ppm / 1e6 : 1;
    case POLICY_SHARES:
        return slice->settings.hard && slice->settings.cap ? slice->settings.cap / 100.0 : 1;
    default:
        return 1;
    }
}

static void update_cap(struct sched_slice *slice, double rate, uint64_t now)
{
    double depth = rate * CAP_DEPTH_NS;

    if (rate >= 1) {
        slice->capped = false;
        slice->throttled = false;
    } else if (!slice->capped) {
        slice->capped = true;
        budget_init(&slice->cap, rate, depth, now);
    } else if (rate != slice->cap.rate) {
        budget_set(&slice->cap, rate, depth, now);
    }
}

void caps_update(struct scheduler *scheduler, uint64_t now)
{
    guint present = count_inhabited(scheduler);

    for (guint i = 0; i < scheduler->slices->len; i++) {
        struct sched_slice *slice = SLICE(scheduler, i);

        update_cap(slice, rate_of(scheduler, slice, present), now);
    }
}

static double slot_of(const struct sched_slice *slice)
{
    double half = slice->cap.depth_ns / 2;

    return half < CAP_SLOT_NS ? half : CAP_SLOT_NS;
}

bool caps_allow(struct sched_slice *slice, uint64_t now)
{
    double balance;

    if (!slice->capped)
        return true;
    balance = budget_balance(&slice->cap, now) - (double)slice->in_flight_ns;
    if (balance <= 0)
        slice->throttled = true;
    else if (balance >= slot_of(slice))
        slice->throttled = false;
    return !slice->throttled;
}

uint64_t caps_when(struct sched_slice *slice, uint64_t now)
{
    struct budget after = slice->cap;

    budget_balance(&after, now);
    budget_spend(&after, (double)slice->in_flight_ns);
    return budget_when(&after, slot_of(slice), now);
}
