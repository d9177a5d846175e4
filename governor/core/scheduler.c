// SPDX-License-Identifier: MIT
#include "scheduler.h"

#include "scheduler_parts.h"

void scheduler_init(struct scheduler *scheduler, uint64_t now)
{
    *scheduler = (struct scheduler){.slices = g_ptr_array_new(), .deadline = TIME_NEVER};
    budget_init(&scheduler->floor, FLOOR_RATE, 2 * FLOOR_SLOT_NS, now);
}

void scheduler_clear(struct scheduler *scheduler)
{
    timeline_clear(&scheduler->timeline);
    g_ptr_array_free(scheduler->slices, TRUE);
}

struct sched_slice *scheduler_add_slice(struct scheduler *scheduler,
                                        const struct slice_settings *settings)
{
    struct sched_slice *slice = g_new0(struct sched_slice, 1);

    slice->settings = *settings;
    slice->weight = (double)settings->weight / 100;
    slice->number = ++scheduler->slice_numbers;
    slice->members = g_ptr_array_new();
    slice->resting = g_ptr_array_new();
    slice->queues = true;
    think_init(&slice->think);
    g_ptr_array_add(scheduler->slices, slice);
    return slice;
}

void scheduler_remove_slice(struct scheduler *scheduler, struct sched_slice *slice)
{
    if (scheduler->free == slice)
        scheduler->free = NULL;
    if (scheduler->lease.holder == slice)
        scheduler->lease = (struct lease){.state = LEASE_NONE};
    g_ptr_array_remove(scheduler->slices, slice);
    g_ptr_array_free(slice->members, TRUE);
    g_ptr_array_free(slice->resting, TRUE);
    g_free(slice);
}

void scheduler_add_member(struct sched_slice *slice, struct sched_member *member, uint64_t now)
{
    member->slice = slice;
    /* Its work in flight was charged when it left, or by the arbiter before this one. */
    member->paid_until = member->behind_until = now;
    member->joined_at = member->moved_at = now;
    sample_take(&member->sample, member->usage, member->came_at, now);
    g_ptr_array_add(slice->members, member);
}

void scheduler_heard(struct sched_member *member)
{
    member->silent = false;
    rest_end(member);
}

/* How many submissions the mean includes. */
#define RECENT_MOST 16

/* A pause between two submissions. Nobody waits for the end of one that is long beside them. */
static void learn_pause(struct scheduler *scheduler, struct sched_slice *slice, uint64_t ns,
                        uint64_t now)
{
    if (ns > PAUSE_NS)
        scheduler->paused_at = now;
    think_learn(&slice->think, ns, slice_batch_part(slice, 4, NS_PER_MS, 2 * PATIENCE_LONG_NS));
}

/* Of the longest that was charged at once, what counts after each further charge. */
#define PAID_DECAY 0.9

/*
 * If a submission is long, its start and its end are seen in different looks: until then its length
 * is the estimate.
 */
static void learn_batch(struct sched_slice *slice, const struct sample *before,
                        const struct sample *after, uint64_t used_ns)
{
    slice->recent_ns +=
        (double)used_ns + (double)after->in_flight_ns - (double)before->in_flight_ns;
    slice->recent_count += (double)(after->submissions - before->submissions);
    slice->paid_ns = MAX((double)used_ns, slice->paid_ns * (used_ns ? PAID_DECAY : 1));
    if (slice->recent_count > RECENT_MOST) {
        slice->recent_ns /= 2;
        slice->recent_count /= 2;
    }
    if (used_ns && slice->recent_count > 0)
        slice->batch_ns = MAX(slice->recent_ns, 0) / slice->recent_count;
}

static uint64_t pause_before_waiting(const struct sample *sample, uint64_t now)
{
    uint64_t since = sample->waiting_at_ns ? sample->waiting_at_ns : now;

    return since > sample->ended_at_ns ? since - sample->ended_at_ns : 0;
}

/* So many times in a row are no hold-up. */
#define MOST_SOON 3

/*
 * It was ignored, and has reacted. One that comes to its leases a little late each time is slow,
 * and must not lose them for that again and again.
 */
static void learn_hold_up(struct scheduler *scheduler, struct sched_member *member, uint64_t now)
{
    /* The lengths of long submissions vary by more than the grace time. */
    bool held = member->slice->batch_ns < 4 * GRACE_NS && now > member->missed_at + GRACE_NS;

    if (member->missed_lease)
        member->slice->reaction_ns = now - member->missed_at;
    member->missed_at = 0;
    member->soon = held ? 0 : member->soon + member->missed_lease;
    if (member->soon >= MOST_SOON)
        member->held_until = 0;
    if (!held)
        return;
    member->held_until = now + HELD_FOR_NS;
    /* It may not run for long: it needs its turn soon. */
    scheduler->paused_at = now;
}

/* True if @member did anything since the last look. */
static bool look_at(struct scheduler *scheduler, struct sched_member *member, uint64_t now)
{
    struct sched_slice *slice = member->slice;
    struct sample *sample = &member->sample;
    struct sample before = *sample;
    uint64_t used_ns;
    bool moved;

    scheduler->looked++;
    sample_take(sample, member->usage, member->came_at, now);
    if (member->away)
        sample->waiting = sample->waiting_beside = false;
    used_ns = account_look(scheduler, member, sample->gpu_ns - before.gpu_ns, now);
    slice->sample.gpu_ns += sample->gpu_ns - before.gpu_ns;
    slice->submissions += sample->submissions - before.submissions;
    slice->submissions += sample->free_submissions - before.free_submissions;
    slice->waited_ns += sample->waited_ns - before.waited_ns;
    slice->throttled_ns += sample->throttled_ns - before.throttled_ns;
    if (scheduler->free != slice)
        learn_batch(slice, &before, sample, used_ns);
    scheduler->ended_at = MAX(scheduler->ended_at, sample->ended_at_ns);
    moved = sample->submissions != before.submissions || sample->gpu_ns != before.gpu_ns ||
            sample->free_submissions != before.free_submissions;
    if (moved || !member->moved_at || sample->waiting || sample->in_flight_ns)
        member->moved_at = now;
    member->silent &= !moved;
    stalls_look(scheduler, member, now);
    if (member->missed_at && !member->silent)
        learn_hold_up(scheduler, member, now);
    return moved;
}

static void learn_pauses(struct scheduler *scheduler, struct sched_slice *slice,
                         const struct sample *before, uint64_t now)
{
    const struct sample *after = &slice->sample;

    /* It continued by itself after a pause. */
    if (after->began_at_ns > before->began_at_ns && before->ended_at_ns &&
        after->began_at_ns > before->ended_at_ns && !before->in_flight_ns && !before->waiting)
        learn_pause(scheduler, slice, after->began_at_ns - before->ended_at_ns, now);
    /* It has to wait for its turn after a pause. */
    if (after->waiting && !before->waiting && !after->in_flight_ns && after->ended_at_ns)
        learn_pause(scheduler, slice, pause_before_waiting(after, now), now);
}

/* Doors notice so late at the most that what had stalled has begun. */
#define BEGUN_LATE_NS NS_PER_MS

/*
 * A killed member's work in flight costs the time since it began. That is what the member would
 * have measured; its estimate may be far too low.
 */
static uint64_t killed_ns(const struct sched_member *member, uint64_t now)
{
    const struct sample *sample = &member->sample;
    uint64_t elapsed = sample_elapsed(sample, now);
    uint64_t behind = now > member->behind_until ? now - member->behind_until : 0;

    if (elapsed && member->stalled_at > sample->ended_at_ns)
        elapsed += BEGUN_LATE_NS;
    return member->stalled ? 0 : MIN(MIN(elapsed, behind), GOVERNOR_IN_FLIGHT_MOST_NS);
}

void scheduler_remove_member(struct scheduler *scheduler, struct sched_member *member, uint64_t now)
{
    struct sched_slice *slice = member->slice;

    rest_end(member);
    /* Its page is still mapped and has its work since the last look. */
    look_at(scheduler, member, now);
    account_use(scheduler, member, killed_ns(member, now));
    /* Others' work may have waited for it until now, and is not late. */
    if (member->sample.in_flight_ns)
        scheduler->ended_at = now;
    g_ptr_array_remove(slice->members, member);
    member->slice = NULL;
    slice_gather(slice);
    if (scheduler->lease.holder == slice && !slice->sample.in_flight_ns && !slice->sample.waiting)
        lease_end(scheduler, now);
}

/* There may have been no look for a while. */
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

/* A slice that pauses is not compensated for more than that. */
#define STEP_MOST_NS (2.0 * NS_PER_S)

/*
 * How much GPU time one submission of another has cost @slice: its length by their weights. It is
 * bounded: otherwise a long submission of a slice of low weight would let @slice save up all that a
 * third slice uses in its pauses.
 */
static double longest_step(const struct scheduler *scheduler, const struct sched_slice *slice)
{
    double longest = 0;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *other = SLICE(scheduler, i);

        if (other->active)
            longest = MAX(longest, other->batch_ns / slice_weight(scheduler, other));
    }
    return MIN(longest * slice_weight(scheduler, slice), STEP_MOST_NS);
}

/* The lowest weight among @slice and its contenders. It bounds how fast virtual time can pass. */
static double least_weight(const struct scheduler *scheduler, const struct sched_slice *slice)
{
    double least = slice_weight(scheduler, slice);

    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *other = SLICE(scheduler, i);

        if (other->active && slice_priority(scheduler, other) == slice_priority(scheduler, slice))
            least = MIN(least, slice_weight(scheduler, other));
    }
    return least;
}

/*
 * The start tag of a slice that returns from idle: that of the others. The tag of the last lease
 * may be far ahead of them, if it was given in a short pause of theirs to a slice that has
 * exceeded, or claims to have exceeded, its share. So no active slice is more than a lease before
 * it.
 */
static double arrival_ns(const struct scheduler *scheduler, const struct sched_slice *slice,
                         uint64_t now)
{
    unsigned priority = slice_priority(scheduler, slice);
    double start = scheduler->virtual_ns[priority];
    double lease_ns = (double)tempo_quantum(scheduler, now);

    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *other = SLICE(scheduler, i);

        if (other != slice && other->active && slice_priority(scheduler, other) == priority)
            start = MIN(start, other->virtual_ns + lease_ns / slice_weight(scheduler, other));
    }
    return start;
}

/*
 * The start tag of a slice that returns from a short pause. It may stay behind by one lease or by
 * one submission of another; otherwise its share would depend on how punctual it is. It keeps its
 * claim from before the pause: a pause can cost no more than virtual time can pass in it.
 */
static double return_of(const struct scheduler *scheduler, const struct sched_slice *slice,
                        uint64_t since, uint64_t now)
{
    double start = arrival_ns(scheduler, slice, now);
    double kept = MAX((double)tempo_quantum(scheduler, now), longest_step(scheduler, slice));
    double pause = since > slice->busy_at ? (double)(since - slice->busy_at) : 0;

    return MIN(start - kept / slice_weight(scheduler, slice),
               slice->virtual_ns + pause / least_weight(scheduler, slice));
}

/* Idle time does not earn credit. */
static void arrive_slice(struct scheduler *scheduler, struct sched_slice *slice, uint64_t now)
{
    uint64_t since = waits_since(slice, now);
    double start;

    if (contend_is_active(slice, since)) {
        start = return_of(scheduler, slice, since, now);
    } else {
        start = arrival_ns(scheduler, slice, now);
        scheduler->paused_at = now;
    }
    slice->virtual_ns = MAX(slice->virtual_ns, start);
}

/* When one of its members last did something, by their own statements. */
static uint64_t last_moved(const struct sched_slice *slice)
{
    uint64_t at = slice->busy_at;

    for (guint i = 0; i < slice->members->len; i++) {
        const struct sample *sample = &MEMBER(slice, i)->sample;

        at = MAX(at, MAX(sample->began_at_ns, sample->ended_at_ns));
    }
    return at;
}

/* Until when work of @slice is expected, by its members' statements. */
static uint64_t expected_until(const struct sched_slice *slice, uint64_t now)
{
    uint64_t until = 0;

    for (guint i = 0; i < slice->members->len; i++) {
        const struct sched_member *member = MEMBER(slice, i);
        uint64_t at = member->expects_at && !member->silent
                          ? atomic_load_explicit(member->expects_at, memory_order_acquire)
                          : 0;

        /* Not if it has come. */
        if (at && at <= now && now < at + GOVERNOR_EXPECTED_MOST_NS &&
            member->sample.began_at_ns < at)
            until = MAX(until, at + GOVERNOR_EXPECTED_MOST_NS);
    }
    return until;
}

static void look_at_slice(struct scheduler *scheduler, struct sched_slice *slice, uint64_t now)
{
    bool was_busy = slice->wanting || slice->in_flight_ns || slice->expected_until;
    struct sample before = slice->sample;
    bool moved = false;

    rest_look(scheduler, slice, now);
    for (guint i = 0; i < slice->members->len; i++)
        moved |= look_at(scheduler, MEMBER(slice, i), now);
    rest_begin(scheduler, slice, now);
    slice_gather(slice);
    learn_pauses(scheduler, slice, &before, now);
    slice->wanting = slice->sample.waiting;
    slice->expected_until = expected_until(slice, now);
    slice->in_flight_ns = sample_spent(&slice->sample, now) - slice->sample.gpu_ns;
    budget_hold(&slice->cap, (double)slice->in_flight_ns);
    if (!was_busy && (slice->wanting || slice->expected_until))
        arrive_slice(scheduler, slice, now);
    if (slice->wanting || slice->in_flight_ns)
        slice->busy_at = now;
    else if (moved)
        slice->busy_at = last_moved(slice);
    if (moved || slice->busy_at == now)
        slice->active |= scheduler->free != slice;
}

/*
 * A member that begins to wait from now on sends a message, or is seen in this look: a member
 * stores that it waits, and then checks whether it is going to be seen.
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
    scheduler->late_ns = now - MIN(now, scheduler->deadline);
    scheduler->deadline = TIME_NEVER;
    forget_next_look(scheduler);
    promises_update(scheduler);
    caps_update(scheduler, now);
    stalls_prepare(scheduler);
    for (guint i = 0; i < scheduler->slices->len; i++)
        look_at_slice(scheduler, SLICE(scheduler, i), now);
    modes_update(scheduler, now);
    lease_run(scheduler, now);
    passes_give(scheduler, now);
    publish_grants(scheduler, now);
    return scheduler->deadline;
}
