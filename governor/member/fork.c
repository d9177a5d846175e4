// SPDX-License-Identifier: MIT
#include "member_state.h"

#include <sched.h>
#include <unistd.h>

/* Without memory for its own pages a child uses its parent's; nothing can be done about it. */
static void renew_member(GovernorMember *member)
{
    bool welcomed = member->link != LINK_NEVER;

    link_forget(member);
    if (!state_renew(member))
        return;
    member->link = LINK_NEVER;
    if (!member->socket_path)
        return;
    pthread_mutex_lock(&member->link_lock);
    link_join(member, clock_now() + JOIN_NS);
    pthread_mutex_unlock(&member->link_lock);
    if (welcomed && member->link == LINK_NEVER)
        link_lost(member);
    /* Without that thread nobody would see the connection's end, and all would wait for ever. */
    if (!link_start(member) && member->link == LINK_JOINED) {
        close(member->fd);
        member->fd = -1;
        link_lost(member);
    }
}

void fork_renew(GovernorMember *member)
{
    uint32_t word = FORK_CHILD;

    /* One thread does it; the others of the child wait. */
    if (atomic_compare_exchange_strong(member->fork_word, &word, FORK_BUSY)) {
        renew_member(member);
        atomic_store(member->fork_word, FORK_NONE);
        return;
    }
    while (atomic_load(member->fork_word) != FORK_NONE)
        sched_yield();
}
