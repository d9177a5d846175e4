/* SPDX-License-Identifier: MIT */
/*
 * Memory that members have kept although they said they gave it. It is found by readings.h: within
 * two seconds, if nothing else of the process changes.
 */
#ifndef GOVERNOR_KEPT_H
#define GOVERNOR_KEPT_H

#include "readings.h"

/**
 * struct kept_account - a member's
 * @changed_at: when what it has last changed
 * @judged: by a reading that was made after that
 * @beyond: what it had on the card beyond its own account, when all of it was there; 0: not known
 * @seen: the same by the last judgement
 * @kept: bytes that it said it gave, and has; since @kept_at
 */
struct kept_account {
    uint64_t changed_at;
    bool judged;
    uint64_t beyond;
    uint64_t seen;
    uint64_t kept;
    uint64_t kept_at;
};

/**
 * struct kept_claim - what the arbiter knows of the member
 * @there: bytes that it should have on the card; @out: that it should not
 * @shared: of its slice, which it may have beside these
 */
struct kept_claim {
    pid_t pid;
    uint64_t there;
    uint64_t out;
    uint64_t shared;
};

void kept_note_change(struct kept_account *account, uint64_t now);
/* Does nothing with a reading that may be older than the claim. */
void kept_judge(struct kept_account *account, const struct readings *readings,
                const struct kept_claim *claim);
/*
 * What somebody has had for half a minute may be its own, though it is not in its account: from now
 * on it is taken for that. Returns how much; 0: it has kept nothing, or not for so long.
 */
uint64_t kept_forgive(struct kept_account *account, uint64_t now);

#endif
