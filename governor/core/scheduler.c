// SPDX-License-Identifier: MIT
#include "scheduler_parts.h"

void scheduler_init(struct scheduler *scheduler, uint64_t now)
{
    *scheduler = (struct scheduler){.slices = g_ptr_array_new(), .deadline = TIME_NEVER};
    budget_init(&scheduler->floor, FLOOR_RATE, 2 * FLOOR_SLOT_NS, now);
}

void scheduler_clear(struct scheduler *scheduler)
{
    g_ptr_array_free(scheduler->slices, TRUE);
}

struct sched_slice *scheduler_add_slice(struct scheduler *scheduler,
                                        const struct slice_settings *settings)
{
    struct sched_slice *slice = g_new0(struct sched_slice, 1);

    slice->settings = *settings;
    slice->members = g_ptr_array_new();
    think_init(&slice->think);
    g_ptr_array_add(scheduler->slices, slice);
    return slice;
}

void scheduler_remove_slice(struct scheduler *scheduler, struct sched_slice *slice)
{
    if (scheduler->free == slice)
        scheduler->free = NULL;
    g_ptr_array_remove(scheduler->slices, slice);
    g_ptr_array_free(slice->members, TRUE);
    g_free(slice);
}

void scheduler_add_member(struct scheduler *scheduler, struct sched_slice *slice,
                          struct sched_member *member, uint64_t now)
{
    member->slice = slice;
    member->queues = true;
    sample_take(&member->sample, member->usage, now);
    g_ptr_array_add(slice->members, member);
    (void)scheduler;
}

static void charge(struct scheduler *scheduler, struct sched_slice *slice, uint64_t ns)
{
    slice->gpu_ns += ns;
    /* What nobody else wanted is not held against it. */
    if (scheduler->free != slice)
        slice->virtual_ns += (double)ns / slice_weight(scheduler, slice);
    if (slice->capped)
        budget_spend(&slice->cap, (double)ns);
}

void scheduler_remove_member(struct scheduler *scheduler, struct sched_member *member, uint64_t now)
{
    struct sched_slice *slice = member->slice;
    uint64_t executed = sample_elapsed(&member->sample, now);

    if (executed > member->sample.in_flight_ns)
        executed = member->sample.in_flight_ns;
    if (!member->stalled)
        charge(scheduler, slice, executed);
    if (scheduler->lease.holder == member)
        lease_end(scheduler, now);
    g_ptr_array_remove(slice->members, member);
    member->slice = NULL;
}

void scheduler_heard(struct sched_member *member)
{
    member->silent = false;
}

void scheduler_stalled(struct sched_member *member)
{
    member->stalled = true;
}

/* Submissions that a mean is of. */
#define RECENT_MOST 16

/* Between two submissions. Nobody waits for the end of one that is long beside them. */
static void learn_pause(struct scheduler *scheduler, struct sched_slice *slice, uint64_t ns,
                        uint64_t now)
{
    if (ns > PAUSE_NS)
        scheduler->paused_at = now;
    think_learn(&slice->think, ns, slice_batch_part(slice, 4, NS_PER_MS, 2 * PATIENCE_LONG_NS));
}

/* A submission and its end are seen in different looks where it is long: until then it is as long
 * as was estimated. */
static void learn_batch(struct sched_slice *slice, const struct sample *before,
                        const struct sample *after)
{
    slice->recent_ns += (double)(after->gpu_ns - before->gpu_ns) + (double)after->in_flight_ns -
                        (double)before->in_flight_ns;
    slice->recent_count += (double)(after->submissions - before->submissions);
    if (slice->recent_count > RECENT_MOST) {
        slice->recent_ns /= 2;
        slice->recent_count /= 2;
    }
    if (after->gpu_ns != before->gpu_ns && slice->recent_count > 0)
        slice->batch_ns = MAX(slice->recent_ns, 0) / slice->recent_count;
}

static uint64_t pause_before_waiting(const struct sample *sample, uint64_t now)
{
    uint64_t since = sample->waiting_at_ns ? sample->waiting_at_ns : now;

    return since > sample->ended_at_ns ? since - sample->ended_at_ns : 0;
}

/* True where @member did anything since the last look. */
static bool look_at(struct scheduler *scheduler, struct sched_member *member, uint64_t now)
{
    struct sched_slice *slice = member->slice;
    struct sample *sample = &member->sample;
    struct sample before = *sample;
    bool moved;

    sample_take(sample, member->usage, now);
    charge(scheduler, slice, sample->gpu_ns - before.gpu_ns);
    slice->submissions += sample->submissions - before.submissions;
    slice->waited_ns += sample->waited_ns - before.waited_ns;
    slice->throttled_ns += sample->throttled_ns - before.throttled_ns;
    if (scheduler->free != slice)
        learn_batch(slice, &before, sample);
    scheduler->ended_at = MAX(scheduler->ended_at, sample->ended_at_ns);
    moved = sample->submissions != before.submissions || sample->gpu_ns != before.gpu_ns;
    if (moved) {
        member->silent = false;
        member->stalled = false;
    }
    /* It went on by itself after a pause. */
    if (sample->began_at_ns > before.began_at_ns && before.ended_at_ns &&
        sample->began_at_ns > before.ended_at_ns && !before.in_flight_ns && !before.waiting)
        learn_pause(scheduler, slice, sample->began_at_ns - before.ended_at_ns, now);
    /* It has to wait for its turn after a pause. */
    if (sample->waiting && !before.waiting && !sample->in_flight_ns && sample->ended_at_ns)
        learn_pause(scheduler, slice, pause_before_waiting(sample, now), now);
    return moved;
}

/* How far behind a slice gets by one submission of another. */
static double longest_step(const struct scheduler *scheduler)
{
    double longest = 0;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *slice = SLICE(scheduler, i);

        if (slice->active)
            longest = MAX(longest, slice->batch_ns / slice_weight(scheduler, slice));
    }
    return longest;
}

/* Nobody may have looked for a while. */
static uint64_t waits_since(const struct sched_slice *slice, uint64_t now)
{
    uint64_t since = now;

    for (guint i = 0; i < slice->members->len; i++) {
        const struct sample *sample = &MEMBER(slice, i)->sample;

        if (sample->waiting && sample->waiting_at_ns)
            since = MIN(since, sample->waiting_at_ns);
    }
    return since;
}

/*
 * Idle time doesn't save up credit: who comes back starts where the others are. A loop that comes
 * back a little late keeps a lease of it, or what one submission of another took from it, or its
 * share would depend on how punctual it is.
 */
static void arrive(struct scheduler *scheduler, struct sched_slice *slice, uint64_t now)
{
    double start = scheduler->virtual_ns[slice_priority(scheduler, slice)];
    double lease_ns = (double)lease_quantum(scheduler, now);

    if (modes_is_active(slice, waits_since(slice, now)))
        start -= MAX(lease_ns / slice_weight(scheduler, slice), longest_step(scheduler));
    else
        scheduler->paused_at = now;
    if (slice->virtual_ns < start)
        slice->virtual_ns = start;
}

/* When one of its members last did something, as far as they say. */
static uint64_t last_moved(const struct sched_slice *slice)
{
    uint64_t at = slice->busy_at;

    for (guint i = 0; i < slice->members->len; i++) {
        const struct sample *sample = &MEMBER(slice, i)->sample;

        at = MAX(at, MAX(sample->began_at_ns, sample->ended_at_ns));
    }
    return at;
}

static void look_at_slice(struct scheduler *scheduler, struct sched_slice *slice, uint64_t now)
{
    bool was_busy = slice->wanting || slice->in_flight_ns;
    bool moved = false;

    slice->wanting = false;
    slice->in_flight_ns = 0;
    for (guint i = 0; i < slice->members->len; i++) {
        struct sched_member *member = MEMBER(slice, i);

        moved |= look_at(scheduler, member, now);
        slice->wanting |= member->sample.waiting && !member->silent;
        if (!member->stalled && !member->silent)
            slice->in_flight_ns += sample_spent(&member->sample, now) - member->sample.gpu_ns;
    }
    budget_hold(&slice->cap, (double)slice->in_flight_ns);
    if (!was_busy && slice->wanting)
        arrive(scheduler, slice, now);
    if (slice->wanting || slice->in_flight_ns)
        slice->busy_at = now;
    else if (moved)
        slice->busy_at = last_moved(slice);
    if (moved || slice->busy_at == now)
        slice->active |= scheduler->free != slice;
}

/*
 * Who begins to wait from now on speaks up, or is seen in this look: a member stores that it waits,
 * and then looks whether it is going to be seen.
 */
static void forget_next_look(struct scheduler *scheduler)
{
    for (guint i = 0; i < scheduler->slices->len; i++) {
        struct sched_slice *slice = SLICE(scheduler, i);

        for (guint j = 0; j < slice->members->len; j++)
            atomic_store_explicit(&MEMBER(slice, j)->grant->looks_at_ns, 0, memory_order_relaxed);
    }
    atomic_thread_fence(memory_order_seq_cst);
}

uint64_t scheduler_run(struct scheduler *scheduler, uint64_t now)
{
    scheduler->deadline = TIME_NEVER;
    forget_next_look(scheduler);
    caps_update(scheduler, now);
    for (guint i = 0; i < scheduler->slices->len; i++)
        look_at_slice(scheduler, SLICE(scheduler, i), now);
    modes_update(scheduler, now);
    lease_run(scheduler, now);
    modes_publish(scheduler, now);
    return scheduler->deadline;
}
