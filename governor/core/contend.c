// SPDX-License-Identifier: MIT
/* Who contends with whom for the engines. */
#include "scheduler_parts.h"

guint contend_active(const struct scheduler *scheduler)
{
    guint count = 0;

    for (guint i = 0; i < scheduler->slices->len; i++)
        count += SLICE(scheduler, i)->active;
    return count;
}

uint64_t contend_idle_after(const struct sched_slice *slice)
{
    return slice_batch_part(slice, 4, IDLE_AFTER_NS, IDLE_AFTER_MOST_NS);
}

bool contend_is_active(const struct sched_slice *slice, uint64_t at)
{
    return slice->active && at < slice->busy_at + contend_idle_after(slice);
}

bool contend_has_rivals(const struct scheduler *scheduler, const struct sched_slice *slice)
{
    unsigned priority = slice_priority(scheduler, slice);

    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *other = SLICE(scheduler, i);

        if (other != slice && other->active && slice_priority(scheduler, other) <= priority)
            return true;
    }
    return false;
}

bool contend_outranked(const struct scheduler *scheduler, const struct sched_slice *slice)
{
    unsigned priority = slice_priority(scheduler, slice);

    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *other = SLICE(scheduler, i);

        if (slice_members(other) && slice_priority(scheduler, other) > priority)
            return true;
    }
    return false;
}
