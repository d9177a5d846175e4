// SPDX-License-Identifier: MIT
/*
 * Decides when a submission may be made: the lease must not be used up, and the GPU must not have
 * more work than it needs to stay busy. Without an arbiter, a budget at the last share replaces
 * leases.
 */
#include "member_state.h"

#include <sys/param.h>

/*
 * A lost wake-up, or the page of an arbiter that is gone, is noticed after this time; the time
 * doubles whenever there was nothing.
 */
#define LOOK_AGAIN_NS      (20 * NS_PER_MS)
#define LOOK_AGAIN_MOST_NS (160 * NS_PER_MS)
/*
 * Work that takes this much longer than estimated is of unknown length, and only this many
 * submissions of it go out.
 */
#define LATE_NS   (500 * NS_PER_US)
#define MOST_LATE 2u
/* The end of short work is more often reported late than it is late. */
#define SHORT_NS   (100 * NS_PER_US)
#define MOST_SHORT 8u
/* The estimates of work this short say nothing. */
#define MOST_IN_FLIGHT 256u
/* All that is deferred may begin at once, outside of any lease: no more than this, by estimates. */
#define DEFERRED_MOST_NS (32 * NS_PER_MS)
/*
 * Late work, and deferred work, may wait for the very thread that is blocked here: for an event
 * that it sets from the host.
 */
#define PATIENCE_NS NS_PER_S

uint64_t turn_spent(const struct lane *lane, uint64_t now)
{
    uint64_t since = MAX(lane->began_at_ns, lane->ended_at_ns), in_flight_ns = lane->in_flight_ns;

    /* What has stalled is not on the GPU. */
    if (lane->in_flight > lane->stalled && now > since)
        in_flight_ns = MAX(in_flight_ns, now - since);
    return lane->gpu_ns + MIN(in_flight_ns, GOVERNOR_IN_FLIGHT_MOST_NS);
}

/*
 * How long until there is room in the GPU's queue for a thread that has waited for @waited_ns; 0:
 * now.
 */
static uint64_t depth_delay(uint64_t depth, const struct lane_queue *queue, uint64_t waited_ns,
                            uint64_t now)
{
    uint64_t running = now > queue->runs_since_ns ? now - queue->runs_since_ns : 0, mean;
    /* Stalled work is not before it: it may even be what the stalled work waits for. */
    uint64_t in_flight_ns = queue->in_flight_ns - queue->stalled_ns;
    uint32_t count = queue->in_flight - queue->stalled;
    bool is_late;

    if (!count)
        return 0;
    if (in_flight_ns > running + depth)
        return in_flight_ns - running - depth;
    if (waited_ns >= PATIENCE_NS)
        return 0;
    /* The oldest of them should have ended by now. */
    mean = in_flight_ns / count;
    is_late = running > mean + LATE_NS && count >= (mean < SHORT_NS ? MOST_SHORT : MOST_LATE);
    return is_late || count >= MOST_IN_FLIGHT ? LOOK_AGAIN_NS : 0;
}

/* The same for deferred work, which waits for no other. */
static uint64_t deferred_delay(const struct lane *lane, uint64_t waited_ns)
{
    bool full = lane->deferred_ns >= DEFERRED_MOST_NS || lane->deferred >= MOST_IN_FLIGHT;

    return full && waited_ns < PATIENCE_NS ? LOOK_AGAIN_NS : 0;
}

static uint64_t budget_delay(struct lane *lane, uint64_t now)
{
    double balance, wait;

    budget_hold(&lane->budget, (double)lane->in_flight_ns);
    balance = budget_balance(&lane->budget, now) - (double)lane->in_flight_ns;
    if (balance > 0)
        return 0;
    if (lane->budget.rate <= 0)
        return LOOK_AGAIN_NS;
    wait = -balance / lane->budget.rate + 1;
    return (uint64_t)MIN(wait, LOOK_AGAIN_NS);
}

void turn_progress(GovernorMember *member)
{
    atomic_fetch_add(&member->progress, 1);
    if (atomic_load(&member->watchers))
        futex_wake(&member->progress);
}

void turn_sleep(GovernorMember *member, uint64_t most_ns)
{
    uint32_t seen = atomic_load(&member->progress);

    atomic_fetch_add(&member->watchers, 1);
    pthread_mutex_unlock(&member->lock);
    futex_wait(&member->progress, seen, MIN(most_ns, LOOK_AGAIN_NS));
    pthread_mutex_lock(&member->lock);
    atomic_fetch_sub(&member->watchers, 1);
}

/* The arbiter looks by itself, and would do nothing before. */
static bool is_watched(const struct lane *lane, uint64_t now)
{
    /*
     * The arbiter clears this before it looks at the waiting threads, and this thread's wait is
     * stored by now.
     */
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(&lane->grant->looks_at_ns, memory_order_acquire) > now;
}

/*
 * A thread that waits for its turn: since when, whether for a lease, whether it has already woken
 * the next, and for which pass; and when it looks again.
 */
struct turn {
    struct governor_work *work;
    uint64_t since;
    bool waits;
    bool passed_on;
    uint32_t pass_offered;
    uint64_t look_again_ns;
};

uint64_t turn_waiting(const struct lane *lane)
{
    return lane->waiting | (uint64_t)lane->waiting_beside << GOVERNOR_BESIDE_SHIFT;
}

static void publish_waiting(const struct lane *lane)
{
    atomic_store_explicit(&lane->usage->waiting, turn_waiting(lane), memory_order_release);
}

/*
 * What it was behind has ended. Other work in flight may wait for it, and its slice may need a pass
 * for that.
 */
static void comes_beside(struct lane *lane, struct governor_work *work)
{
    work->behind = false;
    lane->waiting_beside++;
    publish_waiting(lane);
}

/* @sequence: the value before the grant was read, so that no change in between is missed. */
static void wait_for_lease(GovernorMember *member, struct lane *lane, uint32_t sequence,
                           struct turn *turn, uint64_t now)
{
    bool tell = lane->wanted != sequence && !is_watched(lane, now), behind;
    struct governor_work *work = turn->work;

    if (tell)
        lane->wanted = sequence;
    /* If it has no room in its queue again when it is woken, the next goes first again. */
    turn->passed_on = false;
    pthread_mutex_unlock(&member->lock);
    if (tell)
        link_tell(member, GOVERNOR_WANT, work->estimate_ns, work->class);
    /* Its turn does not come before its memory is back. */
    if (member->displaced && !member->asks)
        governor_member_come(member);
    futex_wait(&lane->grant->sequence, sequence, turn->look_again_ns);
    behind = work->behind && work->still_behind(work->data);
    pthread_mutex_lock(&member->lock);
    if (work->behind && !behind)
        comes_beside(lane, work);
    if (atomic_load(&lane->grant->sequence) != sequence)
        return;
    /* Nothing came: the arbiter may not have received it. */
    lane->wanted = sequence - 1;
    if (turn->look_again_ns < LOOK_AGAIN_MOST_NS)
        turn->look_again_ns *= 2;
}

static void begin_waiting(GovernorMember *member, struct lane *lane,
                          const struct governor_work *work)
{
    if (!lane->waiting) {
        lane->passes_seen = atomic_load_explicit(&lane->grant->passes, memory_order_acquire);
        atomic_store_explicit(&lane->usage->waiting_at_ns, member_now(member),
                              memory_order_relaxed);
    }
    lane->waiting++;
    lane->waiting_beside += !work->behind;
    publish_waiting(lane);
}

/* True if the arbiter lets one submission through, and it is this one. */
static bool take_pass(struct lane *lane, struct turn *turn)
{
    uint32_t passes = atomic_load_explicit(&lane->grant->passes, memory_order_acquire);

    if (passes == lane->passes_seen)
        return false;
    if (!turn->work->behind) {
        lane->passes_seen = passes;
        atomic_fetch_add_explicit(&lane->passes, 1, memory_order_relaxed);
        return true;
    }
    /* It may be for another one that waits. */
    if (turn->pass_offered != passes)
        turn_pass_on(lane);
    turn->pass_offered = passes;
    return false;
}

/* The arbiter learns how long it takes from a lease to the first submission under it. */
static void note_came(GovernorMember *member, struct lane *lane, uint32_t sequence, uint64_t now)
{
    if (lane->came == sequence)
        return;
    lane->came = sequence;
    atomic_store_explicit(&member->usage->came_at_ns[lane - member->lanes], now,
                          memory_order_relaxed);
}

/* True if the submission may be made; otherwise some time has passed. */
static bool try_turn(GovernorMember *member, struct lane *lane, struct turn *turn, uint64_t now)
{
    struct governor_class_grant *grant = lane->grant;
    const struct lane_queue *queue = &lane->queues[turn->work->queue % LANE_QUEUES];
    uint32_t sequence = atomic_load_explicit(&grant->sequence, memory_order_acquire);
    bool joined = member->link == LINK_JOINED;
    uint64_t delay;

    if (atomic_load(&grant->mode) == GOVERNOR_MODE_FREE)
        return true;
    /* Before it asks for a lease, which would pass unused. */
    if (turn->work->deferred && !turn->waits && (delay = deferred_delay(lane, now - turn->since))) {
        turn_sleep(member, delay);
        return false;
    }
    if (joined &&
        turn_spent(lane, now) >= atomic_load_explicit(&grant->limit_ns, memory_order_acquire)) {
        if (!turn->waits)
            begin_waiting(member, lane, turn->work);
        turn->waits = true;
        if (take_pass(lane, turn))
            return true;
        wait_for_lease(member, lane, sequence, turn, now);
        return false;
    }
    delay = joined ? 0 : budget_delay(lane, now);
    if (!delay && !turn->work->deferred)
        delay = depth_delay(atomic_load_explicit(&grant->depth_ns, memory_order_relaxed), queue,
                            now - turn->since, now);
    if (delay && turn->waits && !turn->passed_on) {
        /* Another may go first: what this one waits for may even wait for that. */
        turn->passed_on = true;
        turn_pass_on(lane);
    }
    if (delay)
        turn_sleep(member, delay);
    else if (joined && turn->waits)
        note_came(member, lane, sequence, now);
    return !delay;
}

bool turn_wait(GovernorMember *member, struct lane *lane, struct governor_work *work, uint64_t *now)
{
    uint64_t before = *now;
    struct turn turn = {.work = work, .since = before, .look_again_ns = LOOK_AGAIN_NS};

    for (;;) {
        bool throttled = atomic_load_explicit(&lane->grant->throttled, memory_order_relaxed);

        if (try_turn(member, lane, &turn, before))
            return turn.waits;
        *now = member_now(member);
        lane->waited_ns += *now - before;
        lane->throttled_ns += throttled ? *now - before : 0;
        before = *now;
    }
}

bool turn_taken(struct lane *lane, const struct governor_work *work)
{
    lane->waiting--;
    lane->waiting_beside -= !work->behind;
    publish_waiting(lane);
    return lane->waiting > 0;
}

/* If the lease is used up, the thread that this wakes reports that it is wanted. */
void turn_pass_on(struct lane *lane)
{
    futex_wake_one(&lane->grant->sequence);
}
