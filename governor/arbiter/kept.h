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
 * @beyond: what it had on the card beyond its own account, when all of it was there; @measured:
 * that is known
 * @kept: bytes that it said it gave, and has
 */
struct kept_account {
    uint64_t changed_at;
    bool judged;
    bool measured;
    uint64_t beyond;
    uint64_t kept;
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

#endif
