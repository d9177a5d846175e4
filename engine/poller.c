// SPDX-License-Identifier: MIT
#include "poller.h"

/*
 * The driver sleeps for 50 us between two looks, not less than a doorbell costs, and the kernel's
 * timer slack makes each sleep twice as long: this is what four looks reach.
 */
#define NEAR 400

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

gint64 poller_time(const struct poller *poller, gint64 now)
{
    if (poller->last == 0 || poller->gap > NEAR)
        return 0;
    return MAX(poller->last + NEAR - now, 0);
}
