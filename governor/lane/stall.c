// SPDX-License-Identifier: MIT
#include "lane.h"

/* What is known to wait for something has stalled sooner. */
#define DEFERRED_NS (1 * NS_PER_MS)
/*
 * From then on, work behind it is not held up either. It is reported again as often, because what
 * was submitted since may wait for the same.
 */
#define STUCK_NS (20 * NS_PER_MS)

bool lane_waits(struct lane_work *work, uint64_t waited_ns, bool beside)
{
    uint64_t more;
    bool tell;

    /* It waits from another's end on, which came since. */
    if (waited_ns < work->told_ns)
        work->told_ns = 0;
    more = work->told_ns ? STUCK_NS : work->deferred ? DEFERRED_NS : LANE_STALLED_NS;
    tell = !beside && waited_ns >= work->told_ns + more;

    if (tell) {
        work->told_ns = waited_ns;
        work->unbegun = true;
    }
    work->stuck |= waited_ns >= STUCK_NS;
    return tell;
}

void lane_begun(GovernorMember *member, struct lane_work *work)
{
    work->begun = true;
    work->stuck = false;
    if (!work->unbegun)
        return;
    work->unbegun = false;
    work->debit = governor_member_begun(member, work->debit);
}
