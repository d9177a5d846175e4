// SPDX-License-Identifier: MIT
#include "think.h"

#include "clock.h"

#include <stdbool.h>

#define FIRST_NS (50 * NS_PER_US)
/* If short pauses are rarer than this, it does not pay to expect one: two to a burst are enough. */
#define LEAST_SHORT 0.25
/* The message that reports it, and the look at it. */
#define SLACK_NS (30 * NS_PER_US)

void think_init(struct think *think)
{
    *think = (struct think){.mean_ns = FIRST_NS, .part_short = 1};
}

void think_learn(struct think *think, uint64_t ns, uint64_t short_ns)
{
    bool is_short = ns <= short_ns;
    double error = (double)ns - think->mean_ns;

    think->part_short += (is_short - think->part_short) / 8;
    if (!is_short)
        return;
    think->mean_ns += error / 8;
    think->deviation_ns += ((error < 0 ? -error : error) - think->deviation_ns) / 8;
}

uint64_t think_patience(const struct think *think, uint64_t most_ns)
{
    double patience = think->mean_ns + 2 * think->deviation_ns + SLACK_NS;

    if (think->part_short < LEAST_SHORT || think->mean_ns > (double)most_ns)
        return 0;
    return patience < (double)most_ns ? (uint64_t)patience : most_ns;
}
