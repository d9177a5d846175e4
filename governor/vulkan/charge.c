// SPDX-License-Identifier: MIT
#include "charge.h"

static _Atomic uint64_t *counter_of(const struct charge *charge)
{
    return charge->kind == GOVERNOR_MEMORY_SPILL ? &charge->slice->spilled
                                                 : &charge->slice->heap_usage[charge->heap];
}

void memory_count(const struct charge *charge)
{
    atomic_fetch_add(counter_of(charge), charge->bytes);
}

void memory_uncount(struct charge *charge)
{
    atomic_fetch_sub(counter_of(charge), charge->bytes);
    *charge = (struct charge){0};
}

bool memory_charge(struct layer_device *device, uint64_t bytes, uint32_t heap, bool may_spill,
                   struct charge *charge)
{
    enum governor_memory kind = governor_member_reserve(device->member, bytes, may_spill);

    *charge = (struct charge){0};
    if (kind == GOVERNOR_MEMORY_NONE)
        return false;
    *charge = (struct charge){.bytes = bytes, .slice = device->slice, .kind = kind, .heap = heap};
    memory_count(charge);
    return true;
}

void memory_give_back(struct charge *charge)
{
    if (!charge->bytes)
        return;
    governor_member_release(charge->slice->member, charge->bytes, charge->kind);
    memory_uncount(charge);
}
