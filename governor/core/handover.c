// SPDX-License-Identifier: MIT
#include "handover.h"

#include "clock.h"

#include <glib.h>

/* What is told too early waits on the GPU, and delays a higher class that comes meanwhile. */
#define LEAD_LEAST_NS (150 * NS_PER_US)
#define LEAD_MOST_NS  (100 * NS_PER_MS)
/* What is queued delays others at the end of a lease, and no depth helps who is held up longer. */
#define DEPTH_MOST_NS NS_PER_MS
#define PROMPT_NS     (500 * NS_PER_US)
/*
 * A GPU takes some us to some 100 us. A longer time is another's: of work that waited for something
 * else than the GPU.
 */
#define GPU_MOST_NS NS_PER_MS
/* A handover may be this part of a lease, and a lease is no longer than this for that. */
#define LEASE_PART           64
#define LEASE_MOST_NS        (16 * NS_PER_MS)
#define LEASE_STEADY_PART    256
#define LEASE_STEADY_MOST_NS (32 * NS_PER_MS)

static void learn(struct handover_time *time, double ns)
{
    double error = ns - time->mean_ns;

    time->mean_ns += error / 8;
    time->deviation_ns += (ABS(error) - time->deviation_ns) / 8;
}

/* What suffices for nearly all of them. */
static uint64_t enough(const struct handover_time *time, uint64_t least, uint64_t most)
{
    return (uint64_t)CLAMP(time->mean_ns + 2 * time->deviation_ns, (double)least, (double)most);
}

void handover_learn(struct handover *handover, uint64_t ns)
{
    learn(&handover->all, (double)MIN(ns, LEAD_MOST_NS));
    if (ns <= PROMPT_NS)
        learn(&handover->prompt, (double)ns);
}

uint64_t handover_lead(const struct handover *handover)
{
    return enough(&handover->all, LEAD_LEAST_NS, LEAD_MOST_NS);
}

uint64_t handover_depth(const struct handover *handover)
{
    return 2 * enough(&handover->prompt, LEAD_LEAST_NS, DEPTH_MOST_NS / 2);
}

void gpu_handover_learn(struct gpu_handover *handover, uint64_t ns)
{
    if (ns > GPU_MOST_NS)
        return;
    if (handover->mean_ns > 0)
        handover->mean_ns += ((double)ns - handover->mean_ns) / 16;
    else
        handover->mean_ns = (double)MAX(ns, 1);
}

uint64_t gpu_handover_lease(const struct gpu_handover *handover, bool steady)
{
    if (steady)
        return MIN((uint64_t)(LEASE_STEADY_PART * handover->mean_ns), LEASE_STEADY_MOST_NS);
    return MIN((uint64_t)(LEASE_PART * handover->mean_ns), LEASE_MOST_NS);
}
