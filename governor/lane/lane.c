// SPDX-License-Identifier: MIT
#include "lane.h"

void lane_begin(GovernorMember *member, struct lane_work *work, const struct governor_work *asked)
{
    struct governor_turn turn = {0};
    uint64_t debit = governor_member_submit_work(member, asked, &turn);

    *work = (struct lane_work){
        .class = asked->class,
        .debit = debit,
        .estimate_ns = asked->estimate_ns,
        .behind_ns = turn.behind_ns,
        .passes = turn.passes,
        .waited_for_cap = turn.waited_for_cap,
        .deferred = asked->deferred,
        .unbegun = asked->deferred,
        .submitted_at = clock_now(),
    };
}

uint64_t lane_own(const struct lane_work *work, uint64_t ns, uint64_t end)
{
    uint64_t others_end = work->submitted_at + work->behind_ns;
    uint64_t after = end > others_end ? end - others_end : 0;

    if (!work->behind_ns)
        return ns;
    after = after > work->estimate_ns ? after : work->estimate_ns;
    return after < ns ? after : ns;
}

bool lane_teaches(GovernorMember *member, const struct lane_work *work)
{
    return governor_member_passes(member, work->class) == work->passes;
}

uint64_t lane_end(GovernorMember *member, const struct lane_work *work, uint64_t ns,
                  uint64_t end_at)
{
    if (end_at > ns)
        return governor_member_ran(member, work->debit, end_at - ns, end_at);
    governor_member_end(member, work->debit, ns);
    return ns;
}
