// SPDX-License-Identifier: MIT
#include "kept.h"

#include "clock.h"

/* A driver frees memory soon after it is told to, and a reading takes its time. */
#define QUIET_NS (NS_PER_S / 2)
/* Drivers round. */
#define ROUNDING (64ull << 20)
/* By so much it may have grown beside its account since that was seen: contexts, code, stacks. */
#define UNSEEN (1ull << 30)
/* A process that was judged falsely waits no longer. */
#define KEPT_MOST_NS (30 * NS_PER_S)

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
    uint64_t usual = account->beyond + UNSEEN + ROUNDING + claim->shared;

    if (readings->at <= account->changed_at + QUIET_NS)
        return;
    account->judged = true;
    account->seen = beyond;
    if (!account->kept)
        account->kept_at = readings->at;
    account->kept = beyond > usual ? MIN(beyond - usual, claim->out) : 0;
    if (!claim->out)
        account->beyond = beyond;
}

uint64_t kept_forgive(struct kept_account *account, uint64_t now)
{
    uint64_t kept = account->kept;

    if (!kept || now < account->kept_at + KEPT_MOST_NS)
        return 0;
    account->beyond = account->seen;
    account->kept = 0;
    return kept;
}
