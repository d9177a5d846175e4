// SPDX-License-Identifier: MIT
/* How long leases are. */
#include "scheduler_parts.h"

bool tempo_is_steady(const struct scheduler *scheduler, uint64_t now)
{
    return now - scheduler->paused_at >= HANDOVER_STEADY_NS;
}

/*
 * All others have theirs before a slice has its next one. So long leases are for few: with many, a
 * round would be a second.
 */
#define ROUND_NS (512 * NS_PER_MS)

uint64_t tempo_quantum(const struct scheduler *scheduler, uint64_t now)
{
    uint64_t steady_ns = now - scheduler->paused_at;
    uint64_t turn = MAX(ROUND_NS / MAX(contend_active(scheduler), 1), 2 * QUANTUM_STEADY_NS);
    uint64_t least = steady_ns >= HANDOVER_STEADY_NS ? QUANTUM_STEADY_NS : QUANTUM_NS;

    return MAX(least, MIN(gpu_handover_lease(&scheduler->handover, steady_ns), turn));
}
