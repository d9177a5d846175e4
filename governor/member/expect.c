// SPDX-License-Identifier: MIT
/* Says of work that is still to be submitted that it will come. */
#include "member_state.h"

void governor_member_expect(GovernorMember *member, enum governor_class class)
{
    struct lane *lane = &member->lanes[class];
    _Atomic uint64_t *at = &member->usage->expects_at_ns[class];
    bool tells;

    fork_check(member);
    if (!atomic_load_explicit(&member->grant->preempts[class], memory_order_relaxed))
        return;
    pthread_mutex_lock(&member->lock);
    tells = !lane->in_flight && !lane->waiting &&
            member_now(member) >=
                atomic_load_explicit(at, memory_order_relaxed) + GOVERNOR_EXPECTED_MOST_NS;
    if (tells)
        atomic_store_explicit(at, member_now(member), memory_order_release);
    pthread_mutex_unlock(&member->lock);
    if (tells)
        link_tell(member, GOVERNOR_WANT, 0, class);
}
