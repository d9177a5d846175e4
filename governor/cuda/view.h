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
 * What a slice shows of a card with @card_total bytes, of which @card_free are free: its limit,
 * what all of its processes use, and what is left. False: the slice has no limit, so the card
 * itself is shown.
 */
bool view_of(GovernorMember *member, uint64_t card_total, uint64_t card_free, struct view *view);

#endif
