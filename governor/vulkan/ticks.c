// SPDX-License-Identifier: MIT
#include "ticks.h"

/*
 * From @from to @to, which may be earlier. Shifted to the top of the word, so that a counter that
 * wrapped is right.
 */
static int64_t ticks_distance(const struct ticks *ticks, uint64_t from, uint64_t to)
{
    uint32_t unused = 64 - ticks->bits;

    return (int64_t)((to - from) << unused) >> unused;
}

uint64_t ticks_measure(struct ticks *ticks, uint64_t begin, uint64_t end)
{
    int64_t took;

    if (ticks->has_ended && ticks_distance(ticks, begin, ticks->end) > 0)
        begin = ticks->end;
    took = ticks_distance(ticks, begin, end);
    ticks->end = end;
    ticks->has_ended = true;
    return took > 0 ? (uint64_t)((double)took * ticks->period) : 0;
}

int64_t ticks_between(const struct ticks *ticks, uint64_t from, uint64_t to)
{
    return (int64_t)((double)ticks_distance(ticks, from, to) * ticks->period);
}
