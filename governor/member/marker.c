// SPDX-License-Identifier: MIT
/*
 * Submissions that are not measured, and markers behind them that tell how much of them the GPU has
 * still to do.
 */
#include "member_state.h"

/* A marker carries its number, and above it how often the numbers have begun again. */
#define EPOCH_SHIFT 48
/*
 * What is queued may wait for the very thread that waits here: for a semaphore that it signals
 * later.
 */
#define PATIENCE_NS NS_PER_S
#define LOOK_NS     (20 * NS_PER_MS)
/* When to look again if there is no arbiter that would want to know. */
#define UNBOUND_DUE 4096u

static inline enum governor_pass pass(GovernorMember *member, enum governor_class class)
{
    uint64_t before;

    if (__builtin_expect(atomic_load_explicit(&member->grant->classes[class].mode,
                                              memory_order_relaxed) == GOVERNOR_MODE_METERED,
                         0))
        return GOVERNOR_PASS_METERED;
    before = atomic_fetch_add_explicit(&member->usage->classes[class].free_submissions, 1,
                                       memory_order_relaxed);
    return before >= atomic_load_explicit(&member->lanes[class].marker_due, memory_order_relaxed)
               ? GOVERNOR_PASS_MARK
               : GOVERNOR_PASS_FREE;
}

static __attribute__((noinline)) enum governor_pass pass_any(GovernorMember *member,
                                                             enum governor_class class)
{
    fork_check(member);
    return pass(member, class);
}

/*
 * Almost all is compute, whose words are at places that the compiler knows. Without a call that
 * returns here, hardly a register has to be kept.
 */
enum governor_pass governor_member_pass(GovernorMember *member, enum governor_class class)
{
    uint32_t word = atomic_load_explicit(member->fork_word, memory_order_acquire);

    if (__builtin_expect(word != FORK_NONE || class != GOVERNOR_CLASS_COMPUTE, 0))
        return pass_any(member, class);
    return pass(member, GOVERNOR_CLASS_COMPUTE);
}

static void publish(struct lane *lane)
{
    struct governor_class_usage *usage = lane->usage;

    atomic_store_explicit(&lane->marker_due, lane->backlog.due, memory_order_relaxed);
    atomic_store_explicit(&usage->free_mean_ns, lane->backlog.mean_ns, memory_order_relaxed);
    atomic_store_explicit(&usage->free_since_ns, backlog_since(&lane->backlog),
                          memory_order_relaxed);
    atomic_store_explicit(&usage->free_done, lane->backlog.done, memory_order_release);
}

void marker_restart(struct lane *lane)
{
    backlog_init(&lane->backlog);
    lane->epoch++;
    atomic_store_explicit(&lane->marker_due, lane->backlog.due, memory_order_relaxed);
}

/* How much may be queued; 0: without an arbiter there is no bound. */
static uint64_t allowed(const struct lane *lane)
{
    return atomic_load_explicit(&lane->grant->backlog_ns, memory_order_relaxed);
}

uint64_t governor_member_backlog_ns(const GovernorMember *member, enum governor_class class)
{
    fork_check(member);
    return allowed(&member->lanes[class]);
}

static bool has_to_wait(const struct lane *lane, uint64_t number, uint64_t since, uint64_t now)
{
    uint64_t most = allowed(lane);

    return most && atomic_load(&lane->grant->mode) == GOVERNOR_MODE_FREE &&
           now < since + PATIENCE_NS && number >= lane->backlog.due &&
           backlog_is_full(&lane->backlog, number, most, now);
}

uint64_t governor_member_mark(GovernorMember *member, enum governor_class class)
{
    struct lane *lane = &member->lanes[class];
    uint64_t number, since, now, marker = 0;

    fork_check(member);
    pthread_mutex_lock(&member->lock);
    /* Without the submission that the marker goes before. */
    number = atomic_load(&lane->usage->free_submissions) - 1;
    since = now = member_now(member);
    while (has_to_wait(lane, number, since, now)) {
        turn_sleep(member, LOOK_NS);
        now = member_now(member);
    }
    lane->waited_ns += now - since;
    atomic_store_explicit(&lane->usage->waited_ns, lane->waited_ns, memory_order_release);
    /* Otherwise another thread has placed one meanwhile. */
    if (!allowed(lane))
        lane->backlog.due = number + UNBOUND_DUE;
    else if (number >= lane->backlog.due &&
             backlog_place(&lane->backlog, number, allowed(lane), now))
        marker = number | lane->epoch << EPOCH_SHIFT;
    publish(lane);
    pthread_mutex_unlock(&member->lock);
    return marker;
}

void governor_member_marked(GovernorMember *member, enum governor_class class, uint64_t marker)
{
    struct lane *lane = &member->lanes[class];

    fork_check(member);
    pthread_mutex_lock(&member->lock);
    if (marker >> EPOCH_SHIFT == (lane->epoch & UINT16_MAX)) {
        backlog_pass(&lane->backlog, marker & ((1ull << EPOCH_SHIFT) - 1), member_now(member));
        publish(lane);
        turn_progress(member);
    }
    pthread_mutex_unlock(&member->lock);
}

void governor_member_queued(GovernorMember *member, enum governor_class class, uint64_t count,
                            uint64_t mean_ns)
{
    struct lane *lane = &member->lanes[class];
    struct governor_class_usage *usage = lane->usage;
    uint64_t all, now;

    fork_check(member);
    pthread_mutex_lock(&member->lock);
    now = member_now(member);
    all = atomic_load_explicit(&usage->free_submissions, memory_order_relaxed);
    atomic_store_explicit(&usage->free_mean_ns, mean_ns, memory_order_relaxed);
    atomic_store_explicit(&usage->free_since_ns, now, memory_order_relaxed);
    atomic_store_explicit(&usage->free_done, count < all ? all - count : 0, memory_order_release);
    pthread_mutex_unlock(&member->lock);
}
