/* SPDX-License-Identifier: MIT */
#include "arrivals.h"

#include "clock.h"

#include <math.h>

/* The night's part of the rate at noon. */
#define NIGHT 0.1

/* xorshift64*: from 0 (never) to 1 (at times). */
static double random_unit(struct arrivals *arrivals)
{
    uint64_t x = arrivals->seed;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    arrivals->seed = x;
    return ((double)((x * UINT64_C(2685821657736338717)) >> 11) + 1) / 9007199254740992.0;
}

/* A day begins and ends at midnight. */
static double arrival_curve(const struct arrivals *arrivals, double seconds)
{
    if (arrivals->day_s <= 0)
        return 1;
    return NIGHT + (1 - NIGHT) * (0.5 - 0.5 * cos(2 * M_PI * seconds / arrivals->day_s));
}

/* Thinning: bursts come at the highest rate, and are kept with the curve's probability. */
static void next_burst(struct arrivals *arrivals)
{
    double seconds = (double)arrivals->next_ns / (double)NS_PER_S;

    do
        seconds -= log(random_unit(arrivals)) * arrivals->burst / arrivals->rate;
    while (random_unit(arrivals) > arrival_curve(arrivals, seconds));
    arrivals->next_ns = (uint64_t)(seconds * (double)NS_PER_S);
    arrivals->left = arrivals->burst;
}

void arrivals_start(struct arrivals *arrivals)
{
    arrivals->next_ns = 0;
    next_burst(arrivals);
}

uint64_t arrivals_take(struct arrivals *arrivals)
{
    uint64_t at = arrivals->next_ns;

    if (--arrivals->left == 0)
        next_burst(arrivals);
    return at;
}
