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
/*
 * A handover may be such a part of a lease, and a lease is no longer than so for that, while nobody
 * has returned from a pause for so long.
 */
static const struct {
    uint64_t steady_ns;
    uint64_t part;
    uint64_t most_ns;
} leases[] = {
    {2 * NS_PER_S, 1024, 128 * NS_PER_MS},
    {NS_PER_S, 512, 64 * NS_PER_MS},
    {HANDOVER_STEADY_NS, 256, 32 * NS_PER_MS},
    {0, 64, 16 * NS_PER_MS},
};

static void learn_time(struct handover_time *time, double ns)
{
    double error = ns - time->mean_ns;

    time->mean_ns += error / 8;
    time->deviation_ns += (ABS(error) - time->deviation_ns) / 8;
}

/* What suffices for nearly all of them. */
static uint64_t enough_ns(const struct handover_time *time, uint64_t least, uint64_t most)
{
    return (uint64_t)CLAMP(time->mean_ns + 2 * time->deviation_ns, (double)least, (double)most);
}

void handover_learn(struct handover *handover, uint64_t ns)
{
    learn_time(&handover->all, (double)MIN(ns, LEAD_MOST_NS));
    if (ns <= PROMPT_NS)
        learn_time(&handover->prompt, (double)ns);
}

uint64_t handover_lead(const struct handover *handover)
{
    return enough_ns(&handover->all, LEAD_LEAST_NS, LEAD_MOST_NS);
}

uint64_t handover_depth(const struct handover *handover)
{
    return 2 * enough_ns(&handover->prompt, LEAD_LEAST_NS, DEPTH_MOST_NS / 2);
}

static struct handover_pair *gpu_handover_pair(struct gpu_handover *handover, uint32_t from,
                                               uint32_t to)
{
    struct handover_pair *pair = handover->pairs;
    struct handover_pair *end = pair + MIN(handover->count, HANDOVER_PAIRS);

    while (pair < end && (pair->from != from || pair->to != to))
        pair++;
    if (pair < end)
        return pair;
    pair = &handover->pairs[handover->count++ % HANDOVER_PAIRS];
    *pair = (struct handover_pair){.from = from, .to = to};
    return pair;
}

/* The quarter of the pairs that is lower ends with it. */
static double gpu_handover_quartile(const struct gpu_handover *handover)
{
    uint32_t count = MIN(handover->count, HANDOVER_PAIRS);
    double lowest = 0;

    for (uint32_t rank = 0; rank <= (count - 1) / 4; rank++) {
        double next = G_MAXDOUBLE;

        for (uint32_t i = 0; i < count; i++) {
            if (handover->pairs[i].mean_ns > lowest)
                next = MIN(next, handover->pairs[i].mean_ns);
        }
        lowest = next == G_MAXDOUBLE ? lowest : next;
    }
    return lowest;
}

void gpu_handover_learn(struct gpu_handover *handover, uint32_t from, uint32_t to, uint64_t ns)
{
    struct handover_pair *pair;

    if (ns > GPU_MOST_NS)
        return;
    pair = gpu_handover_pair(handover, from, to);
    if (pair->mean_ns > 0)
        pair->mean_ns += ((double)ns - pair->mean_ns) / 16;
    else
        pair->mean_ns = (double)MAX(ns, 1);
    handover->mean_ns = gpu_handover_quartile(handover);
}

uint64_t gpu_handover_lease(const struct gpu_handover *handover, uint64_t steady_ns)
{
    gsize i = 0;

    while (steady_ns < leases[i].steady_ns)
        i++;
    return MIN((uint64_t)((double)leases[i].part * handover->mean_ns), leases[i].most_ns);
}
