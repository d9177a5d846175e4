// SPDX-License-Identifier: MIT
#include "handover.h"

#include "clock.h"

#include <glib.h>

/* What is told too early waits on the GPU, and delays a higher class that comes meanwhile. */
#define LEAD_LEAST_NS (150 * NS_PER_US)
#define LEAD_MOST_NS  (100 * NS_PER_MS)

void handover_learn(struct handover *handover, uint64_t ns)
{
    double error = (double)MIN(ns, LEAD_MOST_NS) - handover->mean_ns;

    handover->mean_ns += error / 8;
    handover->deviation_ns += (ABS(error) - handover->deviation_ns) / 8;
}

uint64_t handover_lead(const struct handover *handover)
{
    double lead = handover->mean_ns + 2 * handover->deviation_ns;

    return (uint64_t)CLAMP(lead, (double)LEAD_LEAST_NS, (double)LEAD_MOST_NS);
}
