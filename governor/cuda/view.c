// SPDX-License-Identifier: MIT
#include "view.h"

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

bool view_of(GovernorMember *member, uint64_t card_total, uint64_t card_free, struct view *view)
{
    uint64_t limit, used;

    if (!member)
        return false;
    governor_member_memory(member, &limit, &used);
    if (!limit)
        return false;
    view->total = lesser(limit, card_total);
    view->used = used;
    view->free = lesser(used < limit ? limit - used : 0, card_free);
    return true;
}
