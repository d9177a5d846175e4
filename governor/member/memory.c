// SPDX-License-Identifier: MIT
/*
 * Only the arbiter charges memory. The member counts what was granted, to declare it to the next
 * arbiter.
 */
#include "member_state.h"

#include "clock.h"

#include <errno.h>

/* A restarted arbiter is back within that time. */
#define RETURN_NS (500 * NS_PER_MS)
/* Others may be slow to return what they keep, or be stopped. */
#define SPARE_MOST_NS (250 * NS_PER_MS)

static void charge_held(GovernorMember *member, uint64_t bytes, enum governor_memory kind)
{
    if (kind == GOVERNOR_MEMORY_DEVICE)
        member->held += bytes;
    else if (kind == GOVERNOR_MEMORY_SPILL)
        member->held_spilled += bytes;
}

static bool take_room(uint64_t *room, uint64_t bytes)
{
    if (*room == UINT64_MAX)
        return true;
    if (*room < bytes)
        return false;
    *room -= bytes;
    return true;
}

static enum governor_memory take_alone(GovernorMember *member, uint64_t bytes, bool may_spill)
{
    if (member->link == LINK_NEVER || take_room(&member->orphan_room, bytes))
        return GOVERNOR_MEMORY_DEVICE;
    if (may_spill && take_room(&member->orphan_spill, bytes))
        return GOVERNOR_MEMORY_SPILL;
    return GOVERNOR_MEMORY_NONE;
}

static void give_alone(GovernorMember *member, uint64_t bytes, enum governor_memory kind)
{
    uint64_t *room = kind == GOVERNOR_MEMORY_SPILL ? &member->orphan_spill : &member->orphan_room;

    if (member->link == LINK_ORPHAN && *room != UINT64_MAX)
        *room += bytes;
}

/* False if the arbiter has been gone for too long to wait for it. */
static bool wait_for_return(GovernorMember *member)
{
    uint64_t until = member->lost_at + RETURN_NS;
    struct timespec at = {.tv_sec = (time_t)(until / NS_PER_S),
                          .tv_nsec = (long)(until % NS_PER_S)};

    return member->link == LINK_ORPHAN && clock_now() < until &&
           pthread_cond_timedwait(&member->link_changed, &member->link_lock, &at) == 0;
}

/* The link's thread has not yet seen the end of the connection. */
static void wait_for_loss(GovernorMember *member)
{
    while (member->link == LINK_JOINED)
        pthread_cond_wait(&member->link_changed, &member->link_lock);
}

/* Until other members have returned what they keep. */
static bool ask_again(GovernorMember *member, const struct governor_message *request,
                      struct governor_message *answer)
{
    const struct timespec pause = {.tv_nsec = SPARE_LOOK_MS * NS_PER_MS / 2};
    uint64_t until = clock_now() + SPARE_MOST_NS;
    bool answered;

    while ((answered = link_ask(member, request, answer)) && answer->value == EAGAIN &&
           clock_now() < until)
        nanosleep(&pause, NULL);
    return answered;
}

bool memory_ask(GovernorMember *member, const struct governor_message *request,
                struct governor_message *answer)
{
    bool answered = false;

    do {
        if (member->link != LINK_JOINED)
            continue;
        /* It must not stand in the way of this member's own request. */
        spare_report(member);
        answered = ask_again(member, request, answer);
        if (!answered)
            wait_for_loss(member);
    } while (!answered && (member->link == LINK_JOINED || wait_for_return(member)));
    return answered;
}

/* A page that is replaced is looked at again. */
#define ROOM_LOOK_NS (100 * NS_PER_MS)

/*
 * Until others have made room, or have not. 0, ENOMEM, or EAGAIN: the arbiter that was asked is
 * gone. Under link_lock, which is released meanwhile.
 */
static int await_room(GovernorMember *member)
{
    const struct governor_grant *grant = member->grant;
    uint64_t connection = member->connections;

    for (;;) {
        uint32_t sequence = atomic_load(&grant->orders), room = atomic_load(&grant->room);

        if (member->link != LINK_JOINED || member->connections != connection)
            return EAGAIN;
        if (room != GOVERNOR_ROOM_AWAITED)
            return room == GOVERNOR_ROOM_GRANTED ? 0 : ENOMEM;
        pthread_mutex_unlock(&member->link_lock);
        futex_wait(&member->grant->orders, sequence, ROOM_LOOK_NS);
        pthread_mutex_lock(&member->link_lock);
    }
}

/* True: the request is to be made again. @answer: what became of it otherwise. */
static bool settle_room(GovernorMember *member, struct governor_message *answer)
{
    int result;

    if (answer->value == EBUSY) {
        while (member->awaits_room)
            pthread_cond_wait(&member->link_changed, &member->link_lock);
        return true;
    }
    if (answer->value != EINPROGRESS)
        return false;
    member->awaits_room = true;
    result = await_room(member);
    member->awaits_room = false;
    pthread_cond_broadcast(&member->link_changed);
    answer->value = (uint64_t)result;
    return result == EAGAIN;
}

enum governor_memory memory_take(GovernorMember *member, uint64_t bytes, bool may_spill)
{
    struct governor_message request = message_of(GOVERNOR_RESERVE, bytes, may_spill);
    struct governor_message answer;

    do {
        if (!memory_ask(member, &request, &answer))
            return take_alone(member, bytes, may_spill);
    } while (settle_room(member, &answer));
    if (answer.value)
        return GOVERNOR_MEMORY_NONE;
    return answer.other ? GOVERNOR_MEMORY_SPILL : GOVERNOR_MEMORY_DEVICE;
}

enum governor_memory governor_member_reserve(GovernorMember *member, uint64_t bytes, bool may_spill)
{
    enum governor_memory kind = GOVERNOR_MEMORY_DEVICE;

    fork_check(member);
    if (!bytes)
        return GOVERNOR_MEMORY_DEVICE;
    pthread_mutex_lock(&member->link_lock);
    if (!spare_take(member, bytes))
        kind = memory_take(member, bytes, may_spill);
    charge_held(member, bytes, kind);
    pthread_mutex_unlock(&member->link_lock);
    return kind;
}

uint64_t memory_uncharge(GovernorMember *member, uint64_t bytes, enum governor_memory kind)
{
    uint64_t *held = kind == GOVERNOR_MEMORY_SPILL ? &member->held_spilled : &member->held;

    if (kind == GOVERNOR_MEMORY_NONE)
        return 0;
    /* A child may free, or export, what its parent was charged for. */
    bytes = bytes < *held ? bytes : *held;
    *held -= bytes;
    return bytes;
}

void memory_freed(GovernorMember *member, uint64_t bytes, enum governor_memory kind)
{
    struct governor_message release =
        message_of(GOVERNOR_RELEASE, bytes, kind == GOVERNOR_MEMORY_SPILL ? bytes : 0);

    if (!bytes)
        return;
    if (member->link != LINK_JOINED) {
        give_alone(member, bytes, kind);
        return;
    }
    if (kind == GOVERNOR_MEMORY_DEVICE)
        spare_returned(member, (int64_t)bytes);
    link_tell_back(member, &release);
}

void governor_member_release(GovernorMember *member, uint64_t bytes, enum governor_memory kind)
{
    fork_check(member);
    pthread_mutex_lock(&member->link_lock);
    bytes = memory_uncharge(member, bytes, kind);
    if (kind == GOVERNOR_MEMORY_DEVICE)
        bytes = moving_release(member, bytes);
    if (!spare_keep(member, bytes, kind))
        memory_freed(member, bytes, kind);
    pthread_mutex_unlock(&member->link_lock);
}

void governor_member_pages(GovernorMember *member)
{
    fork_check(member);
    pthread_mutex_lock(&member->lock);
    member->pages = true;
    atomic_store(&member->usage->pages, 1);
    pthread_mutex_unlock(&member->lock);
}

void memory_tell_driver(GovernorMember *member)
{
    struct governor_message driver = message_of(GOVERNOR_DRIVER, member->driver, 0);

    link_tell_back(member, &driver);
}

void governor_member_driver(GovernorMember *member, uint64_t bytes)
{
    fork_check(member);
    pthread_mutex_lock(&member->link_lock);
    if (member->driver != bytes) {
        member->driver = bytes;
        if (member->link == LINK_JOINED)
            memory_tell_driver(member);
    }
    pthread_mutex_unlock(&member->link_lock);
}

/* The arbiter answers in order. */
static void await_returns(GovernorMember *member)
{
    const struct governor_message request = message_of(GOVERNOR_RESERVE, 0, 0);
    struct governor_message answer;

    if (!memory_ask(member, &request, &answer))
        member->told_back = false;
}

void governor_member_memory(GovernorMember *member, uint64_t *limit, uint64_t *used)
{
    uint64_t spare;

    fork_check(member);
    pthread_mutex_lock(&member->link_lock);
    if (member->told_back)
        await_returns(member);
    spare = member->spare;
    *limit = atomic_load_explicit(&member->grant->memory_limit, memory_order_relaxed);
    *used = atomic_load_explicit(&member->grant->memory_used, memory_order_relaxed);
    pthread_mutex_unlock(&member->link_lock);
    *used -= spare < *used ? spare : *used;
}
