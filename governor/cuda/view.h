/* SPDX-License-Identifier: MIT */
#ifndef GOVERNOR_CUDA_VIEW_H
#define GOVERNOR_CUDA_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "member.h"

struct view {
    uint64_t total;
    uint64_t used;
    uint64_t free;
};

/*
 * What a slice shows of a card that has @card_total bytes, of which @card_free are free: its limit,
 * what all of its processes have, and what it can still have. False: the slice has no limit; it
 * shows the card.
 */
bool view_of(GovernorMember *member, uint64_t card_total, uint64_t card_free, struct view *view);

#endif
