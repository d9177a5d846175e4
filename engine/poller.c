// SPDX-License-Identifier: MIT
#include "poller.h"

/* Requests that are rarer than this are not worth polling for. */
#define MAX_GAP 10000

/* A pause of this many gaps is the end of a burst. */
#define PATIENCE 4

/* Polls per gap, and their bounds: a sleep is never shorter than the cost of a doorbell. */
#define LOOKS_PER_GAP 4
#define MIN_INTERVAL  50
#define MAX_INTERVAL  1000

void poller_seen(struct poller *poller, gint64 now)
{
    gint64 gap = now - poller->last;

    /* After a long pause one request says nothing about the next. */
    if (poller->last == 0 || gap > PATIENCE * MAX_GAP)
        gap = PATIENCE * MAX_GAP;
    poller->gap = poller->last == 0 ? gap : (poller->gap + gap) / 2;
    poller->last = now;
}

gint64 poller_interval(const struct poller *poller, gint64 now)
{
    if (poller->last == 0 || poller->gap > MAX_GAP)
        return -1;
    if (now - poller->last > MAX(PATIENCE * poller->gap, PATIENCE * MIN_INTERVAL))
        return -1;
    return CLAMP(poller->gap / LOOKS_PER_GAP, MIN_INTERVAL, MAX_INTERVAL);
}
