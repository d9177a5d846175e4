// SPDX-License-Identifier: MIT
/*
 * Submissions that are not measured, and markers behind them that tell how much of them the GPU has
 * still to do.
 */
#include "member_state.h"

/* A marker carries its number, and above it how often the numbers have begun again. */
#define EPOCH_SHIFT 48
/* How often to look again: if a thread of the door's sees markers, and if nobody does. */
#define LOOK_NS     (20 * NS_PER_MS)
#define OWN_LOOK_NS (100 * NS_PER_US)
/* When to look again if there is no arbiter that would want to know. */
#define UNBOUND_DUE 4096u

static inline enum governor_pass pass_class(GovernorMember *member, enum governor_class class)
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
    if (class == GOVERNOR_CLASS_COPY)
        governor_member_expect(member, GOVERNOR_CLASS_COMPUTE);
    return pass_class(member, class);
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
    return pass_class(member, GOVERNOR_CLASS_COMPUTE);
}

static void publish_backlog(struct lane *lane)
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
static uint64_t allowed_ns(const struct lane *lane)
{
    return atomic_load_explicit(&lane->grant->backlog_ns, memory_order_relaxed);
}

static bool has_to_wait(const struct lane *lane, uint64_t number, uint64_t now)
{
    uint64_t most = allowed_ns(lane);

    return most && atomic_load(&lane->grant->mode) == GOVERNOR_MODE_FREE &&
           number >= lane->backlog.due && backlog_is_full(&lane->backlog, number, most, now);
}

/* Until there is room behind submission @number. Returns the time. Under lock. */
static uint64_t wait_for_room(GovernorMember *member, struct lane *lane, uint64_t number,
                              void (*look)(void *data), void *data)
{
    uint64_t since = member_now(member), now = since, moved_at = since, done;

    while (has_to_wait(lane, number, now)) {
        if (now >= moved_at + backlog_patience_ns(&lane->backlog, number, now)) {
            backlog_give_up(&lane->backlog, now);
            break;
        }
        done = lane->backlog.done;
        turn_sleep(member, look ? OWN_LOOK_NS : LOOK_NS);
        if (look) {
            pthread_mutex_unlock(&member->lock);
            look(data);
            pthread_mutex_lock(&member->lock);
        }
        now = member_now(member);
        if (lane->backlog.done != done)
            moved_at = now;
    }
    lane->waited_ns += now - since;
    atomic_store_explicit(&lane->usage->waited_ns, lane->waited_ns, memory_order_release);
    return now;
}

uint64_t governor_member_mark(GovernorMember *member, enum governor_class class, uint64_t count,
                              void (*look)(void *data), void *data)
{
    struct lane *lane = &member->lanes[class];
    uint64_t number, now, marker = 0;

    fork_check(member);
    if (look)
        look(data);
    pthread_mutex_lock(&member->lock);
    /* Without the submission that the marker goes before. */
    number = atomic_load(&lane->usage->free_submissions) - 1;
    now = wait_for_room(member, lane, number, look, data);
    /* Otherwise another thread has placed one meanwhile. */
    if (!allowed_ns(lane))
        lane->backlog.due = number + UNBOUND_DUE;
    else if (number >= lane->backlog.due &&
             backlog_place(&lane->backlog, number, count, allowed_ns(lane), now))
        marker = number | lane->epoch << EPOCH_SHIFT;
    publish_backlog(lane);
    pthread_mutex_unlock(&member->lock);
    return marker;
}

/* @at: when it has passed; 0: it was not placed. */
static void take_out(GovernorMember *member, enum governor_class class, uint64_t marker,
                     uint64_t at)
{
    struct lane *lane = &member->lanes[class];
    uint64_t number = marker & ((1ull << EPOCH_SHIFT) - 1);

    pthread_mutex_lock(&member->lock);
    if (marker >> EPOCH_SHIFT == (lane->epoch & UINT16_MAX)) {
        if (at)
            backlog_pass(&lane->backlog, number, at);
        else
            backlog_cancel(&lane->backlog, number);
        publish_backlog(lane);
        turn_progress(member);
    }
    pthread_mutex_unlock(&member->lock);
}

void governor_member_marked(GovernorMember *member, enum governor_class class, uint64_t marker,
                            uint64_t at_ns)
{
    fork_check(member);
    take_out(member, class, marker,
             at_ns ? at_ns + (uint64_t)atomic_load(&member->clock_offset) : member_now(member));
}

void governor_member_unmarked(GovernorMember *member, enum governor_class class, uint64_t marker)
{
    fork_check(member);
    take_out(member, class, marker, 0);
}
