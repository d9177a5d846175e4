// SPDX-License-Identifier: MIT
#include "poller.h"

/* A sleep is never shorter than the cost of a doorbell. */
#define INTERVAL 50

/* What four looks reach: the kernel's timer slack makes each sleep twice as long. */
#define NEAR (8 * INTERVAL)

/* After a pause three quick requests are a burst again. */
#define PAUSE (4 * NEAR)

void poller_seen(struct poller *poller, gint64 now)
{
    gint64 gap = now - poller->last;

    if (poller->last == 0)
        poller->gap = PAUSE;
    else
        poller->gap = (poller->gap + MIN(gap, PAUSE)) / 2;
    poller->last = now;
}

gint64 poller_interval(const struct poller *poller, gint64 now)
{
    if (poller->last == 0 || poller->gap > NEAR || now - poller->last > NEAR)
        return -1;
    return INTERVAL;
}
