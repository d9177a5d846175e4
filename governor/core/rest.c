// SPDX-License-Identifier: MIT
/*
 * Members that have done nothing for a while rest: a look does not come to them, so that processes
 * that only have a connection cost nobody anything. A member that rests has no lease, and nobody
 * looks for it by a known time, so it sends a message before it submits, which ends its rest. For
 * those that submit nevertheless (a deferred submission begins), each look comes to a part of them.
 * While a slice is free none of its members rests, because it sends no messages.
 */
#include "scheduler_parts.h"

#define REST_AFTER_NS NS_PER_S
#define REST_PART     16

static bool member_is_idle(const struct scheduler *scheduler, const struct sched_member *member,
                           uint64_t now)
{
    const struct sample *sample = &member->sample;

    return now >= member->moved_at + REST_AFTER_NS && !sample->waiting && !sample->in_flight_ns &&
           !sample->backlog_ns && scheduler->free != member->slice;
}

/* A submission that it makes at this moment, by its last lease, is seen in one of the next looks.
 */
static void member_rest(struct sched_member *member)
{
    struct governor_class_grant *grant = member->grant;

    g_ptr_array_remove(member->slice->members, member);
    g_ptr_array_add(member->slice->resting, member);
    member->rests = true;
    /* Nobody tells it when that changes. */
    if (member->preempts)
        atomic_store_explicit(member->preempts, member->slice->settings.priority > 0,
                              memory_order_relaxed);
    atomic_store_explicit(&grant->looks_at_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&grant->limit_ns, 0, memory_order_release);
    atomic_store_explicit(&grant->mode, GOVERNOR_MODE_METERED, memory_order_release);
}

void rest_end(struct sched_member *member)
{
    if (!member->rests)
        return;
    g_ptr_array_remove_fast(member->slice->resting, member);
    g_ptr_array_add(member->slice->members, member);
    member->rests = false;
    member->moved_at = 0;
}

void rest_end_all(struct sched_slice *slice)
{
    while (slice->resting->len)
        rest_end(g_ptr_array_index(slice->resting, slice->resting->len - 1));
}

void rest_begin(struct scheduler *scheduler, struct sched_slice *slice, uint64_t now)
{
    for (guint i = slice->members->len; i--;) {
        if (member_is_idle(scheduler, MEMBER(slice, i), now))
            member_rest(MEMBER(slice, i));
    }
}

void rest_look(struct scheduler *scheduler, struct sched_slice *slice, uint64_t now)
{
    for (guint i = (slice->resting->len + REST_PART - 1) / REST_PART; i-- && slice->resting->len;) {
        struct sched_member *member =
            g_ptr_array_index(slice->resting, slice->rest_looks++ % slice->resting->len);
        struct sample sample = member->sample;

        scheduler->looked++;
        sample_take(&sample, member->usage, member->came_at, now);
        if (sample.waiting || sample.in_flight_ns || sample.gpu_ns != member->sample.gpu_ns ||
            sample.submissions != member->sample.submissions)
            rest_end(member);
    }
}
