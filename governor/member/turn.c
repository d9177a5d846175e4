// SPDX-License-Identifier: MIT
/*
 * Decides when a submission may be made: the lease must not be used up, and the GPU must not have
 * more work than it needs to stay busy. Without an arbiter, a budget at the last share replaces
 * leases.
 */
#include "member_state.h"

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
/*
 * Late work may wait for the very thread that is blocked here: for an event that it sets from the
 * host.
 */
#define PATIENCE_NS NS_PER_S

static uint64_t elapsed(const GovernorMember *member, uint64_t now)
{
    uint64_t since =
        member->began_at_ns > member->ended_at_ns ? member->began_at_ns : member->ended_at_ns;

    return member->in_flight && now > since ? now - since : 0;
}

static bool lease_open(const GovernorMember *member, uint64_t now)
{
    uint64_t running = elapsed(member, now);

    if (running < member->in_flight_ns)
        running = member->in_flight_ns;
    return member->gpu_ns + running <
           atomic_load_explicit(&member->grant->limit_ns, memory_order_acquire);
}

/* The oldest of @count submissions should have ended by now. */
static bool is_late(uint64_t in_flight_ns, uint32_t count, uint64_t running)
{
    uint64_t mean = in_flight_ns / count;

    return running > mean + LATE_NS && count >= (mean < SHORT_NS ? MOST_SHORT : MOST_LATE);
}

/*
 * How long until there is room in the GPU's queue for a thread that has waited for @waited_ns; 0:
 * now.
 */
static uint64_t depth_delay(const GovernorMember *member, uint64_t waited_ns, uint64_t now)
{
    uint64_t depth = atomic_load_explicit(&member->grant->depth_ns, memory_order_relaxed);
    uint64_t running = elapsed(member, now);
    /* Stalled work is not before it: it may even be what the stalled work waits for. */
    uint64_t in_flight_ns = member->in_flight_ns - member->stalled_ns;
    uint32_t count = member->in_flight - member->stalled;

    if (!count)
        return 0;
    if (in_flight_ns > running + depth)
        return in_flight_ns - running - depth;
    if (waited_ns >= PATIENCE_NS)
        return 0;
    return is_late(in_flight_ns, count, running) || count >= MOST_IN_FLIGHT ? LOOK_AGAIN_NS : 0;
}

static uint64_t budget_delay(GovernorMember *member, uint64_t now)
{
    double balance = budget_balance(&member->budget, now) - (double)member->in_flight_ns;
    double wait;

    if (balance > 0)
        return 0;
    if (member->budget.rate <= 0)
        return LOOK_AGAIN_NS;
    wait = -balance / member->budget.rate + 1;
    return wait < LOOK_AGAIN_NS ? (uint64_t)wait : LOOK_AGAIN_NS;
}

void turn_progress(GovernorMember *member)
{
    atomic_fetch_add(&member->progress, 1);
    if (atomic_load(&member->watchers))
        futex_wake(&member->progress);
}

static void wait_for_progress(GovernorMember *member, uint64_t timeout_ns)
{
    uint32_t seen = atomic_load(&member->progress);

    atomic_fetch_add(&member->watchers, 1);
    pthread_mutex_unlock(&member->lock);
    futex_wait(&member->progress, seen, timeout_ns < LOOK_AGAIN_NS ? timeout_ns : LOOK_AGAIN_NS);
    pthread_mutex_lock(&member->lock);
    atomic_fetch_sub(&member->watchers, 1);
}

/* The arbiter looks by itself, and would do nothing before. */
static bool is_watched(const GovernorMember *member, uint64_t now)
{
    /*
     * The arbiter clears this before it looks at the waiting threads, and this thread's wait is
     * stored by now.
     */
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(&member->grant->looks_at_ns, memory_order_acquire) > now;
}

/*
 * A thread that waits for its turn: since when, whether for a lease, whether it has already woken
 * the next, and when it looks again.
 */
struct turn {
    uint64_t estimate_ns;
    bool deferred;
    uint64_t since;
    bool waits;
    bool passed_on;
    uint64_t look_again_ns;
};

/* @sequence: the value before the grant was read, so that no change in between is missed. */
static void wait_for_lease(GovernorMember *member, uint32_t sequence, struct turn *turn,
                           uint64_t now)
{
    bool tell = member->wanted != sequence && !is_watched(member, now);

    if (tell)
        member->wanted = sequence;
    pthread_mutex_unlock(&member->lock);
    if (tell)
        link_tell(member, GOVERNOR_WANT, turn->estimate_ns, 0);
    futex_wait(&member->grant->sequence, sequence, turn->look_again_ns);
    pthread_mutex_lock(&member->lock);
    if (atomic_load(&member->grant->sequence) != sequence)
        return;
    /* Nothing came: the arbiter may not have received it. */
    member->wanted = sequence - 1;
    if (turn->look_again_ns < LOOK_AGAIN_MOST_NS)
        turn->look_again_ns *= 2;
}

static void set_waiting(GovernorMember *member, uint32_t count)
{
    if (!member->waiting)
        atomic_store_explicit(&member->usage->waiting_at_ns, member_now(member), memory_order_relaxed);
    member->waiting = count;
    atomic_store_explicit(&member->usage->waiting, count, memory_order_release);
}

/* True if the submission may be made; otherwise some time has passed. */
static bool try_turn(GovernorMember *member, struct turn *turn, uint64_t now)
{
    uint32_t sequence = atomic_load_explicit(&member->grant->sequence, memory_order_acquire);
    bool joined = member->link == LINK_JOINED;
    uint64_t delay;

    if (atomic_load(&member->grant->mode) == GOVERNOR_MODE_FREE)
        return true;
    if (joined && !lease_open(member, now)) {
        if (!turn->waits)
            set_waiting(member, member->waiting + 1);
        turn->waits = true;
        wait_for_lease(member, sequence, turn, now);
        return false;
    }
    delay = joined ? 0 : budget_delay(member, now);
    if (!delay && !turn->deferred)
        delay = depth_delay(member, now - turn->since, now);
    if (delay && turn->waits && !turn->passed_on) {
        /* Another may go first: what this one waits for may even wait for that. */
        turn->passed_on = true;
        turn_pass_on(member);
    }
    if (delay)
        wait_for_progress(member, delay);
    return !delay;
}

bool turn_wait(GovernorMember *member, uint64_t estimate_ns, bool deferred)
{
    uint64_t before = member_now(member), now;
    struct turn turn = {.estimate_ns = estimate_ns,
                        .deferred = deferred,
                        .since = before,
                        .look_again_ns = LOOK_AGAIN_NS};

    for (;;) {
        bool throttled = atomic_load_explicit(&member->grant->throttled, memory_order_relaxed);

        if (try_turn(member, &turn, before))
            return turn.waits;
        now = member_now(member);
        member->waited_ns += now - before;
        member->throttled_ns += throttled ? now - before : 0;
        before = now;
    }
}

bool turn_taken(GovernorMember *member)
{
    set_waiting(member, member->waiting - 1);
    return member->waiting > 0;
}

/* If the lease is used up, the thread that this wakes reports that it is wanted. */
void turn_pass_on(GovernorMember *member)
{
    futex_wake_one(&member->grant->sequence);
}
