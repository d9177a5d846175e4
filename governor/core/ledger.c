// SPDX-License-Identifier: MIT
#include "ledger.h"

#include <errno.h>

/*
 * Limits of one number of a member, and of a slice's sum, whatever its members send: sums do not
 * overflow.
 */
#define MOST        (1ull << 52)
#define MOST_IN_ALL (1ull << 62)

static bool is_possible(const struct ledger *ledger, uint64_t bytes)
{
    return bytes <= MOST && ledger->used <= MOST_IN_ALL && ledger->spill_used <= MOST_IN_ALL;
}

static bool fits_limit(uint64_t used, uint64_t limit, uint64_t bytes)
{
    return used <= limit && bytes <= limit - used;
}

int ledger_reserve(struct ledger *ledger, struct holding *holding, uint64_t bytes, bool may_spill,
                   uint64_t *spilled)
{
    *spilled = 0;
    if (!bytes || !is_possible(ledger, bytes) || holding->device + bytes > MOST ||
        holding->spilled + bytes > MOST)
        return EINVAL;
    if (!ledger->limit || fits_limit(ledger->used, ledger->limit, bytes)) {
        ledger->used += bytes;
        holding->device += bytes;
        return 0;
    }
    if (!may_spill || !fits_limit(ledger->spill_used, ledger->spill_limit, bytes))
        return ENOMEM;
    ledger->spill_used += bytes;
    holding->spilled += bytes;
    *spilled = bytes;
    return 0;
}

bool ledger_release(struct ledger *ledger, struct holding *holding, uint64_t bytes,
                    uint64_t spilled)
{
    if (spilled > bytes || spilled > holding->spilled || bytes - spilled > holding->device)
        return false;
    holding->spilled -= spilled;
    holding->device -= bytes - spilled;
    ledger->spill_used -= spilled;
    ledger->used -= bytes - spilled;
    return true;
}

bool ledger_adopt(struct ledger *ledger, struct holding *holding, uint64_t device, uint64_t spilled)
{
    if (!is_possible(ledger, device) || !is_possible(ledger, spilled))
        return false;
    *holding = (struct holding){.device = device, .spilled = spilled};
    ledger->used += device;
    ledger->spill_used += spilled;
    return true;
}

bool ledger_set_driver(struct ledger *ledger, struct holding *holding, uint64_t bytes)
{
    if (bytes > holding->driver && !is_possible(ledger, bytes))
        return false;
    ledger->used += bytes - holding->driver;
    ledger->driver += bytes - holding->driver;
    holding->driver = bytes;
    return true;
}

bool ledger_set_ungoverned(struct ledger *ledger, uint64_t bytes)
{
    if (bytes > ledger->ungoverned && !is_possible(ledger, bytes))
        return false;
    ledger->used += bytes - ledger->ungoverned;
    ledger->ungoverned = bytes;
    return true;
}
