// SPDX-License-Identifier: MIT
/*
 * Memory that was returned and is not reported yet: what the program takes next may be of it, and
 * then the arbiter need not be asked. It stays charged to the slice meanwhile, so it is little, is
 * not kept near the slice's limit, and is reported as soon as the program pauses.
 */
#include "member_state.h"

#define MOST_BYTES (16ull << 20)
/* Of a slice's limit: what all of its members may keep together, and what must be left of it. */
#define PART_KEPT 64
#define PART_LEFT 8

static uint64_t most_kept(const GovernorMember *member)
{
    uint64_t limit = atomic_load_explicit(&member->grant->memory_limit, memory_order_relaxed);
    uint64_t used = atomic_load_explicit(&member->grant->memory_used, memory_order_relaxed);
    uint32_t members = atomic_load_explicit(&member->grant->members, memory_order_relaxed);
    uint64_t part;

    if (!limit)
        return MOST_BYTES;
    if (used > limit - limit / PART_LEFT)
        return 0;
    part = limit / PART_KEPT / (members ? members : 1);
    return part < MOST_BYTES ? part : MOST_BYTES;
}

void spare_returned(GovernorMember *member, int64_t bytes)
{
    member->returned += (uint64_t)bytes;
    atomic_store_explicit(&member->usage->returned, member->returned, memory_order_relaxed);
}

bool spare_keep(GovernorMember *member, uint64_t bytes, enum governor_memory kind)
{
    uint64_t room = most_kept(member);

    if (kind != GOVERNOR_MEMORY_DEVICE || member->link != LINK_JOINED || member->stop_fd < 0 ||
        room < member->spare || room - member->spare < bytes)
        return false;
    member->spare += bytes;
    member->spare_uses++;
    spare_returned(member, (int64_t)bytes);
    if (!member->spare_watched)
        member->spare_watched = link_wake(member);
    if (!member->spare_watched)
        spare_report(member);
    return true;
}

bool spare_take(GovernorMember *member, uint64_t bytes)
{
    if (member->spare < bytes)
        return false;
    member->spare -= bytes;
    member->spare_uses++;
    spare_returned(member, -(int64_t)bytes);
    return true;
}

void spare_report(GovernorMember *member)
{
    struct governor_message release = message_of(GOVERNOR_RELEASE, member->spare, 0);

    if (!member->spare)
        return;
    member->spare = 0;
    link_tell_back(member, &release);
}

bool spare_look(GovernorMember *member)
{
    bool goes_on;

    pthread_mutex_lock(&member->link_lock);
    goes_on = member->spare_watched && member->spare_uses != member->spare_seen;
    member->spare_seen = member->spare_uses;
    if (!goes_on) {
        member->spare_watched = false;
        spare_report(member);
    }
    pthread_mutex_unlock(&member->link_lock);
    return goes_on;
}

void spare_forget(GovernorMember *member)
{
    member->spare = member->returned = 0;
    member->spare_watched = false;
}
