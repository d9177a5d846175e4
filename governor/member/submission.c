// SPDX-License-Identifier: MIT
#include "member_state.h"

/*
 * A debit is its estimate, and the number of stalls before it, modulo; an odd number was deferred.
 */
#define DEFERRED     1ull
#define STALLS_SHIFT 1
#define STALLS_MASK  0xffu
#define NS_SHIFT     9
/* More is not believed. */
#define MOST_NS (3600 * NS_PER_S)

bool governor_member_is_metered(const GovernorMember *member)
{
    fork_check(member);
    return atomic_load_explicit(&member->grant->mode, memory_order_relaxed) ==
           GOVERNOR_MODE_METERED;
}

void governor_member_count(GovernorMember *member)
{
    fork_check(member);
    atomic_fetch_add_explicit(&member->usage->submissions, 1, memory_order_relaxed);
}

static void store(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

static uint64_t debit_of(const GovernorMember *member, uint64_t ns, bool deferred)
{
    return ns << NS_SHIFT | (uint64_t)(member->stalls & STALLS_MASK) << STALLS_SHIFT |
           (deferred ? DEFERRED : 0);
}

static void add_in_flight(GovernorMember *member, uint64_t ns)
{
    if (!member->in_flight++) {
        member->began_at_ns = member_now(member);
        store(&member->usage->began_at_ns, member->began_at_ns);
    }
    member->in_flight_ns += ns;
    budget_hold(&member->budget, (double)member->in_flight_ns);
    store(&member->usage->in_flight_ns, member->in_flight_ns);
}

/* It stalled, and now continues or is given up. */
static void take_stalled(GovernorMember *member, uint64_t ns)
{
    if (!member->stalled)
        return;
    member->stalled--;
    member->stalled_ns -= ns < member->stalled_ns ? ns : member->stalled_ns;
    if (!member->stalled)
        member->stalled_ns = 0;
}

/* True if it was the last. A child may end what its parent began, and has no debit for it. */
static bool take_in_flight(GovernorMember *member, uint64_t debit)
{
    uint64_t ns = debit >> NS_SHIFT;

    if ((debit & DEFERRED) || !member->in_flight)
        return false;
    if ((debit >> STALLS_SHIFT & STALLS_MASK) != (member->stalls & STALLS_MASK))
        take_stalled(member, ns);
    member->in_flight--;
    member->in_flight_ns -= ns < member->in_flight_ns ? ns : member->in_flight_ns;
    if (!member->in_flight)
        member->in_flight_ns = member->stalled_ns = member->stalled = 0;
    budget_hold(&member->budget, (double)member->in_flight_ns);
    store(&member->usage->in_flight_ns, member->in_flight_ns);
    return !member->in_flight;
}

/* Nothing is in flight any more, and others wait for that. */
static void tell_idle(GovernorMember *member, bool last)
{
    if (last && atomic_load_explicit(&member->grant->contended, memory_order_relaxed))
        link_tell(member, GOVERNOR_IDLE, 0, 0);
}

/*
 * A turn was waited for, and nothing is in flight for it. True if nothing else is: the lease need
 * not be kept.
 */
static bool pass_turn(GovernorMember *member)
{
    if (member->in_flight)
        return false;
    store(&member->usage->began_at_ns, member_now(member));
    return true;
}

uint64_t governor_member_begin(GovernorMember *member, uint64_t estimate_ns, bool deferred)
{
    uint64_t ns = estimate_ns < MOST_NS ? estimate_ns : MOST_NS;
    bool waited, idle = false, others_wait = false;
    uint64_t debit;

    ns = ns ? ns : 1;
    fork_check(member);
    pthread_mutex_lock(&member->lock);
    if (!deferred && !member->in_flight)
        silence_learn(&member->silence, member_now(member) - member->ended_at_ns);
    waited = turn_wait(member, ns, deferred);
    if (!deferred)
        add_in_flight(member, ns);
    else if (waited)
        idle = pass_turn(member);
    if (waited)
        others_wait = turn_taken(member);
    store(&member->usage->waited_ns, member->waited_ns);
    store(&member->usage->throttled_ns, member->throttled_ns);
    debit = debit_of(member, ns, deferred);
    pthread_mutex_unlock(&member->lock);
    if (others_wait)
        turn_pass_on(member);
    atomic_fetch_add_explicit(&member->usage->submissions, 1, memory_order_relaxed);
    tell_idle(member, idle);
    return debit;
}

uint64_t governor_member_behind_ns(const GovernorMember *member)
{
    uint64_t until = atomic_load_explicit(&member->grant->others_until_ns, memory_order_relaxed);
    uint64_t now = until ? member_now(member) : 0;

    return until > now ? until - now : 0;
}

/* Under lock. Nothing is in flight: records whether the member continues by itself. */
static bool comes_back(GovernorMember *member)
{
    return member->gpu_ns < atomic_load_explicit(&member->grant->limit_ns, memory_order_relaxed) &&
           silence_keep(&member->silence);
}

void governor_member_end(GovernorMember *member, uint64_t debit, uint64_t measured_ns)
{
    uint64_t measured = measured_ns < MOST_NS ? measured_ns : MOST_NS;
    bool last;

    fork_check(member);
    pthread_mutex_lock(&member->lock);
    member->gpu_ns += measured;
    member->ended_at_ns = member_now(member);
    budget_spend(&member->budget, (double)measured);
    /* Stored before it is no longer in flight: a look in between sees it twice, not never. */
    store(&member->usage->gpu_ns, member->gpu_ns);
    store(&member->usage->ended_at_ns, member->ended_at_ns);
    last = take_in_flight(member, debit) && !comes_back(member);
    turn_progress(member);
    pthread_mutex_unlock(&member->lock);
    tell_idle(member, last);
}

void governor_member_cancel(GovernorMember *member, uint64_t debit)
{
    bool last;

    fork_check(member);
    pthread_mutex_lock(&member->lock);
    last = take_in_flight(member, debit);
    turn_progress(member);
    pthread_mutex_unlock(&member->lock);
    tell_idle(member, last);
}

uint64_t governor_member_begun(GovernorMember *member, uint64_t debit)
{
    uint64_t ns = debit >> NS_SHIFT;

    fork_check(member);
    pthread_mutex_lock(&member->lock);
    if (debit & DEFERRED)
        add_in_flight(member, ns);
    else if ((debit >> STALLS_SHIFT & STALLS_MASK) != (member->stalls & STALLS_MASK))
        take_stalled(member, ns);
    /* It executes from now on. */
    member->began_at_ns = member_now(member);
    store(&member->usage->began_at_ns, member->began_at_ns);
    debit = debit_of(member, ns, false);
    turn_progress(member);
    pthread_mutex_unlock(&member->lock);
    return debit;
}

void governor_member_stalled(GovernorMember *member)
{
    bool more;

    fork_check(member);
    pthread_mutex_lock(&member->lock);
    more = member->in_flight > member->stalled;
    if (more) {
        member->stalls++;
        member->stalled = member->in_flight;
        member->stalled_ns = member->in_flight_ns;
    }
    turn_progress(member);
    pthread_mutex_unlock(&member->lock);
    if (more)
        link_tell(member, GOVERNOR_STALLED, 0, 0);
}
