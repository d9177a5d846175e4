// SPDX-License-Identifier: MIT
/* Says of work that is still to be submitted that it will come. */
#include "member_state.h"

void governor_member_expect(GovernorMember *member, enum governor_class class)
{
    struct lane *lane = &member->lanes[class];
    _Atomic uint64_t *at = &member->usage->expects_at_ns[class];
    uint64_t now;
    bool tells;

    fork_check(member);
    if (!atomic_load_explicit(&member->grant->preempts[class], memory_order_relaxed))
        return;
    pthread_mutex_lock(&member->lock);
    now = member_now(member);
    /* What comes soon after its work ended may be the copy of a result. */
    tells = !lane->in_flight && !lane->waiting &&
            now >= lane->ended_at_ns + GOVERNOR_EXPECTED_MOST_NS &&
            now >= atomic_load_explicit(at, memory_order_relaxed) + GOVERNOR_EXPECTED_MOST_NS;
    if (tells)
        atomic_store_explicit(at, now, memory_order_release);
    pthread_mutex_unlock(&member->lock);
    if (tells)
        link_tell(member, GOVERNOR_WANT, 0, class);
}
