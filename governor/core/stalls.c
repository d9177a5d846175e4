// SPDX-License-Identifier: MIT
/*
 * Members whose work in flight waits for something other than the GPU: their lease goes to others.
 * A door sees only that its oldest work has not begun for some milliseconds. On a card that gives
 * each process its time slice in turn, work waits for as long behind others'. So a member is
 * believed only when nobody else's work can be before its own any more. Otherwise more and more
 * processes would be let on the card, where each of them waits for the others.
 */
#include "scheduler.h"
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
    /* It repeats that now and then; but what began since has stalled only now. */
    if (!member->says_stalled || known.began_at_ns > member->stalled_at) {
        member->stalled_at = now;
        member->stalled = false;
    }
    member->says_stalled = true;
    member->stalled_count = known.submissions;
    member->stalled_gpu_ns = known.gpu_ns;
}

/*
 * Something was submitted since, or has ended. What did so before is perhaps seen only now: the
 * member has reported it with that in mind, and does not repeat it.
 */
static bool is_continuing(const struct sched_member *member)
{
    const struct sample *sample = &member->sample;

    return sample->submissions > member->stalled_count || sample->gpu_ns > member->stalled_gpu_ns ||
           /* The event that it waited for has come. */
           sample->began_at_ns > member->stalled_at;
}

static bool is_on_card(const struct sched_member *member)
{
    return member->sample.in_flight_ns && !member->says_stalled && !member->silent;
}

/* Time slices come in turn to all that have work on the GPU. */
static void note_work(struct stall_look *look, const struct sched_member *member)
{
    const struct sample *sample = &member->sample;
    uint64_t until = MAX(sample->began_at_ns, sample->ended_at_ns);

    until += look->on_card * sample->in_flight_ns;
    if (until > look->until) {
        look->until_beside_last = look->until;
        look->until = until;
        look->last = member;
    } else {
        look->until_beside_last = MAX(look->until_beside_last, until);
    }
}

void stalls_prepare(struct scheduler *scheduler)
{
    struct stall_look look = {0};
    bool any = false;

    for (guint i = 0; i < scheduler->slices->len; i++) {
        const struct sched_slice *slice = SLICE(scheduler, i);

        for (guint k = 0; k < slice->members->len; k++) {
            look.on_card += MEMBER(slice, k)->sample.in_flight_ns > 0;
            any |= MEMBER(slice, k)->says_stalled;
        }
    }
    for (guint i = 0; any && i < scheduler->slices->len; i++) {
        const struct sched_slice *slice = SLICE(scheduler, i);

        for (guint k = 0; k < slice->members->len; k++)
            if (is_on_card(MEMBER(slice, k)))
                note_work(&look, MEMBER(slice, k));
    }
    scheduler->stalls = look;
}

/* Until when the GPU may run the work of another member than @member. */
static uint64_t others_run_until(const struct scheduler *scheduler,
                                 const struct sched_member *member)
{
    const struct stall_look *look = &scheduler->stalls;

    return MAX(scheduler->ended_at, look->last == member ? look->until_beside_last : look->until);
}

void stalls_look(struct scheduler *scheduler, struct sched_member *member, uint64_t now)
{
    uint64_t until;

    if (member->says_stalled && is_continuing(member))
        member->says_stalled = member->stalled = false;
    if (!member->says_stalled || member->stalled)
        return;
    until = MIN(others_run_until(scheduler, member) + BEGINS_LATE_NS,
                member->stalled_at + scheduler->stalls.on_card * SLICE_MOST_NS);
    member->stalled = now >= until;
    if (!member->stalled)
        scheduler_call_at(scheduler, until);
}

void stalls_forget_waiting(struct sched_member *member)
{
    if (member->sample.waiting)
        member->says_stalled = member->stalled = false;
}
