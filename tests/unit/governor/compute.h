/* SPDX-License-Identifier: MIT */
/* A member's calls for those tests that have compute on one queue only. */
#ifndef GOVERNOR_COMPUTE_H
#define GOVERNOR_COMPUTE_H

#include "member.h"

#include <stddef.h>

static inline bool compute_is_metered(const GovernorMember *member)
{
    return governor_member_class_is_metered(member, GOVERNOR_CLASS_COMPUTE);
}

static inline void compute_count(GovernorMember *member)
{
    governor_member_class_count(member, GOVERNOR_CLASS_COMPUTE);
}

static inline uint64_t compute_begin(GovernorMember *member, uint64_t estimate_ns, bool deferred)
{
    const struct governor_work work = {.estimate_ns = estimate_ns, .deferred = deferred};

    return governor_member_submit_work(member, &work, NULL);
}

static inline void compute_stalled(GovernorMember *member)
{
    governor_member_class_stalled(member, GOVERNOR_CLASS_COMPUTE);
}

#endif
