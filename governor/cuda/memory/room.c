// SPDX-License-Identifier: MIT
#include "room.h"

#include "clock.h"
#include "graph_reserve.h"
#include "later.h"
#include "mover.h"
#include "own.h"
#include "pools.h"
#include "spill.h"

#define LOOK_EACH_NS 1000000000u

bool room_make(struct gpu *gpu)
{
    bool pools = pools_trim(gpu), graphs = graph_trim(gpu);

    return graphs || pools;
}

/* What was found to be there already makes it less. */
static bool find_room(struct gpu *gpu)
{
    bool made = room_make(gpu), later = later_make_room(gpu);

    return own_note(gpu) || made || later;
}

/*
 * The runtime can make a context through a table of the driver's, past the entry points, and code
 * can be loaded when it is first launched. NVML takes its time, so it is not asked at each
 * allocation.
 */
static void look_now_and_then(struct gpu *gpu)
{
    uint64_t seen = atomic_load_explicit(&gpu->seen_ns, memory_order_relaxed), now = clock_now();

    if ((!seen || now >= seen + LOOK_EACH_NS) &&
        atomic_compare_exchange_strong(&gpu->seen_ns, &seen, now)) {
        own_note(gpu);
        /* The slice's memory may move from now on. */
        if (gpu->member && governor_member_moves(gpu->member) && mover_start(gpu))
            mover_tell_unmovable(gpu);
    }
}

static bool take_room(struct gpu *gpu, uint64_t bytes, bool may_spill, struct charge *charge)
{
    *charge = (struct charge){0};
    if (!gpu)
        return true;
    look_now_and_then(gpu);
    if (!gpu->member)
        return false;
    if (charge_try(gpu, bytes, false, charge) ||
        (find_room(gpu) && charge_try(gpu, bytes, false, charge)))
        return true;
    return may_spill && spill_possible(gpu) && charge_try(gpu, bytes, true, charge);
}

bool room_take(struct gpu *gpu, uint64_t bytes, struct charge *charge)
{
    return take_room(gpu, bytes, false, charge);
}

bool room_take_or_spill(struct gpu *gpu, uint64_t bytes, struct charge *charge)
{
    return take_room(gpu, bytes, true, charge);
}
