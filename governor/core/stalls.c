// SPDX-License-Identifier: MIT
/*
 * Members whose work in flight waits for something other than the GPU: their lease goes to others.
 * A door sees only that its oldest work has not begun for some milliseconds. On a card that gives
 * each process its time slice in turn, work waits for as long behind others'. So a member is
 * believed only when nobody else's work can be before its own any more. Otherwise more and more
 * processes would be let on the card, where each of them waits for the others.
 */
#include "scheduler_parts.h"

/* So late at the most the work begins after others' has ended, and the door notices it. */
#define BEGINS_LATE_NS (2 * NS_PER_MS)
/*
 * It is believed in the end, because others may say that they work for ever: when each that has
 * work on the GPU must have had a time slice.
 */
#define SLICE_MOST_NS (10 * NS_PER_MS)

void scheduler_stalled(struct sched_member *member, uint64_t now)
{
    struct sample known = member->sample;

    sample_take(&known, member->usage, member->came_at, now);
    /* It repeats that now and then. */
    if (!member->says_stalled)
        member->stalled_at = now;
    member->says_stalled = true;
    member->stalled_count = known.submissions;
    member->stalled_gpu_ns = known.gpu_ns;
}

/*
 * Something was submitted since, or has ended. What did so before is perhaps seen only now: the
 * member has reported it with that in mind, and does not repeat it.
 */
static bool continues(const struct sched_member *member)
{
    const struct sample *sample = &member->sample;

    return sample->submissions > member->stalled_count || sample->gpu_ns > member->stalled_gpu_ns ||
           /* The event that it waited for has come. */
           sample->began_at_ns > member->stalled_at;
}

static guint count_on_card(const struct scheduler *scheduler)
{
    guint count = 0;

    for (guint i = 0; i < scheduler->slices->len; i++)
        for (guint k = 0; k < SLICE(scheduler, i)->members->len; k++)
            count += MEMBER(SLICE(scheduler, i), k)->sample.in_flight_ns > 0;
    return count;
}

/*
 * Until when the GPU may run the work of another member than @member, whose time slices come in
 * turn with those of all that have work there.
 */
static uint64_t others_run_until(const struct scheduler *scheduler,
                                 const struct sched_member *member, guint on_card)
{
    uint64_t until = scheduler->ended_at;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        for (guint k = 0; k < SLICE(scheduler, i)->members->len; k++) {
            const struct sched_member *other = MEMBER(SLICE(scheduler, i), k);
            const struct sample *sample = &other->sample;

            if (other == member || !sample->in_flight_ns || other->says_stalled || other->silent)
                continue;
            until = MAX(until, MAX(sample->began_at_ns, sample->ended_at_ns) +
                                   on_card * sample->in_flight_ns);
        }
    }
    return until;
}

void stalls_look(struct scheduler *scheduler, struct sched_member *member, uint64_t now)
{
    uint64_t until;
    guint on_card;

    if (member->says_stalled && continues(member))
        member->says_stalled = member->stalled = false;
    if (!member->says_stalled || member->stalled)
        return;
    on_card = count_on_card(scheduler);
    until = MIN(others_run_until(scheduler, member, on_card) + BEGINS_LATE_NS,
                member->stalled_at + on_card * SLICE_MOST_NS);
    member->stalled = now >= until;
    if (!member->stalled)
        scheduler_call_at(scheduler, until);
}

void stalls_forget_waiting(struct sched_member *member)
{
    if (member->sample.waiting)
        member->says_stalled = member->stalled = false;
}
