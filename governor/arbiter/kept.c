// SPDX-License-Identifier: MIT
#include "kept.h"

#include "clock.h"

/* A driver frees memory soon after it is told to, and a reading takes its time. */
#define QUIET_NS (NS_PER_S / 2)
/* Drivers round. */
#define ROUNDING (64ull << 20)
/* What a process has beside its own account, if that was never seen: contexts, code. */
#define UNSEEN (1ull << 30)

void kept_note_change(struct kept_account *account, uint64_t now)
{
    account->changed_at = now;
    account->judged = false;
}

void kept_judge(struct kept_account *account, const struct readings *readings,
                const struct kept_claim *claim)
{
    uint64_t has = readings_of(readings, claim->pid);
    uint64_t beyond = has > claim->there ? has - claim->there : 0;
    uint64_t usual = (account->measured ? account->beyond : UNSEEN) + ROUNDING + claim->shared;

    if (readings->at <= account->changed_at + QUIET_NS)
        return;
    account->judged = true;
    account->kept = beyond > usual ? MIN(beyond - usual, claim->out) : 0;
    if (claim->out)
        return;
    account->beyond = beyond;
    account->measured = true;
}
