// SPDX-License-Identifier: MIT
/*
 * What a member says of its memory that moves, and what it is told. The two sums on the grant's
 * page begin again with each connection, and so do the sums of what was said. A member that has
 * moved a part when its connection was another one joins once more: only then the arbiter knows
 * what is where.
 */
#include "member_state.h"

#include "clock.h"

#include <errno.h>

/* Who waits on a page that is replaced is not woken through the new one. */
#define LOOK_NS NS_PER_S

bool governor_member_moves(const GovernorMember *member)
{
    fork_check(member);
    return atomic_load_explicit(&member->grant->moves, memory_order_relaxed);
}

static bool tell_moved(GovernorMember *member, enum governor_message_type type, uint64_t value,
                       uint64_t other)
{
    const struct governor_message message = message_of(type, value, other);

    if (member->link != LINK_JOINED)
        return false;
    link_tell_back(member, &message);
    return true;
}

static uint64_t rest_of(uint64_t until, uint64_t done)
{
    return until > done ? until - done : 0;
}

/* No more can be fixed there than is there. */
static uint64_t most_fixed(const GovernorMember *member, uint64_t bytes)
{
    uint64_t there = rest_of(member->held, member->displaced);

    return bytes < there ? bytes : there;
}

void moving_declare(GovernorMember *member)
{
    member->connections++;
    member->gave = member->took = 0;
    if (!member->movable)
        return;
    member->unmovable = most_fixed(member, member->unmovable);
    tell_moved(member, GOVERNOR_MOVABLE, member->displaced, member->unmovable);
    if (member->asks)
        tell_moved(member, GOVERNOR_COME, 0, 0);
}

void governor_member_movable(GovernorMember *member)
{
    fork_check(member);
    pthread_mutex_lock(&member->link_lock);
    if (!member->movable) {
        member->movable = true;
        member->unmovable = member->held;
        tell_moved(member, GOVERNOR_MOVABLE, 0, member->unmovable);
    }
    pthread_mutex_unlock(&member->link_lock);
}

void governor_member_orders(GovernorMember *member, struct governor_orders *orders)
{
    const struct governor_grant *grant = member->grant;

    fork_check(member);
    pthread_mutex_lock(&member->link_lock);
    *orders = (struct governor_orders){.sequence = atomic_load(&grant->orders),
                                       .connection = member->connections};
    if (member->link == LINK_JOINED) {
        orders->leave = rest_of(atomic_load(&grant->leave_until), member->gave);
        orders->take = rest_of(atomic_load(&grant->take_until), member->took);
        orders->copies = atomic_load(&grant->copies);
        orders->copies_most = atomic_load(&grant->copies_most);
        orders->returns = atomic_load(&grant->returns);
    }
    pthread_mutex_unlock(&member->link_lock);
}

void governor_member_await_orders(GovernorMember *member, const struct governor_orders *seen)
{
    futex_wait(&member->grant->orders, seen->sequence, LOOK_NS);
}

/* Under link_lock. False: the order was of another connection, and this one ends. */
static bool count_moved(GovernorMember *member, const struct governor_orders *by, uint64_t *sum,
                        uint64_t bytes)
{
    if (by->connection == member->connections && member->link == LINK_JOINED) {
        *sum += bytes;
        return true;
    }
    if (member->link == LINK_JOINED)
        link_break(member);
    return false;
}

void governor_member_gave(GovernorMember *member, const struct governor_orders *by, uint64_t bytes,
                          uint64_t ns)
{
    pthread_mutex_lock(&member->link_lock);
    member->displaced += bytes;
    if (count_moved(member, by, &member->gave, bytes))
        tell_moved(member, GOVERNOR_GAVE, bytes, ns);
    pthread_mutex_unlock(&member->link_lock);
}

void governor_member_took(GovernorMember *member, const struct governor_orders *by, uint64_t bytes,
                          uint64_t ns)
{
    pthread_mutex_lock(&member->link_lock);
    member->displaced -= bytes;
    if (!member->displaced)
        member->asks = false;
    if (count_moved(member, by, &member->took, bytes))
        tell_moved(member, GOVERNOR_TOOK, bytes, ns);
    pthread_mutex_unlock(&member->link_lock);
}

void governor_member_clean(GovernorMember *member, const struct governor_orders *by)
{
    pthread_mutex_lock(&member->link_lock);
    if (by->connection == member->connections)
        tell_moved(member, GOVERNOR_CLEAN, 1, 0);
    pthread_mutex_unlock(&member->link_lock);
}

void governor_member_stuck(GovernorMember *member, const struct governor_orders *by, bool leaving,
                           enum governor_stuck reason)
{
    const struct governor_grant *grant = member->grant;
    _Atomic uint64_t const *until = leaving ? &grant->leave_until : &grant->take_until;
    uint64_t *sum = leaving ? &member->gave : &member->took, rest;

    pthread_mutex_lock(&member->link_lock);
    rest = rest_of(atomic_load(until), *sum);
    if (by->connection == member->connections && member->link == LINK_JOINED && rest) {
        *sum += rest;
        /* By the reason the arbiter knows which of the two orders it is of. */
        tell_moved(member, GOVERNOR_STUCK, rest, leaving ? reason : GOVERNOR_STUCK_CARD);
    }
    if (!member->displaced)
        member->asks = false;
    pthread_mutex_unlock(&member->link_lock);
}

void governor_member_come(GovernorMember *member)
{
    pthread_mutex_lock(&member->link_lock);
    /* All may be back by now, or nothing displaced yet: then it is said again when something is. */
    member->asks = member->displaced > 0;
    tell_moved(member, GOVERNOR_COME, 0, 0);
    pthread_mutex_unlock(&member->link_lock);
}

void governor_member_unmovable(GovernorMember *member, uint64_t movable)
{
    uint64_t unmovable;

    pthread_mutex_lock(&member->link_lock);
    unmovable = most_fixed(member, rest_of(member->held, movable));
    if (unmovable != member->unmovable)
        tell_moved(member, GOVERNOR_FLOOR, unmovable, 0);
    member->unmovable = unmovable;
    pthread_mutex_unlock(&member->link_lock);
}

void governor_member_freed_displaced(GovernorMember *member, uint64_t bytes)
{
    pthread_mutex_lock(&member->link_lock);
    member->freed_displaced += bytes;
    pthread_mutex_unlock(&member->link_lock);
}

uint64_t moving_release(GovernorMember *member, uint64_t bytes)
{
    uint64_t displaced = bytes < member->freed_displaced ? bytes : member->freed_displaced;

    if (!displaced)
        return bytes;
    member->freed_displaced -= displaced;
    member->displaced -= displaced;
    tell_moved(member, GOVERNOR_RELEASE_DISPLACED, displaced, 0);
    return bytes - displaced;
}

bool governor_member_is_waiting(GovernorMember *member)
{
    bool waiting = false;

    pthread_mutex_lock(&member->lock);
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
        waiting |= member->lanes[i].waiting;
    pthread_mutex_unlock(&member->lock);
    return waiting;
}

int governor_member_vault(GovernorMember *member, uint64_t bytes, uint64_t *number)
{
    int fd;

    fork_check(member);
    pthread_mutex_lock(&member->link_lock);
    fd = link_ask_vault(member, bytes, number);
    pthread_mutex_unlock(&member->link_lock);
    return fd;
}

void governor_member_vault_return(GovernorMember *member, uint64_t number)
{
    pthread_mutex_lock(&member->link_lock);
    tell_moved(member, GOVERNOR_VAULT_RETURN, number, 0);
    pthread_mutex_unlock(&member->link_lock);
}
