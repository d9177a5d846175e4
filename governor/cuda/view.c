// SPDX-License-Identifier: MIT
#include "view.h"

#include <sys/param.h>

bool view_of(GovernorMember *member, uint64_t card_total, uint64_t card_free, struct view *view)
{
    uint64_t limit, used;

    if (!member)
        return false;
    governor_member_memory(member, &limit, &used);
    if (!limit)
        return false;
    view->total = MIN(limit, card_total);
    view->used = used;
    view->free = MIN(used < limit ? limit - used : 0, card_free);
    return true;
}
