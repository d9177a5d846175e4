/* SPDX-License-Identifier: MIT */
/*
 * Whether the engine looks at the queues by itself for a while after a request, and how often. As
 * long as it does, the guest need not ring: a doorbell costs an exit of the guest and a call of the
 * VMM, a look one system call.
 *
 * It adapts: the time between looks is a part of the usual time between requests, and where those
 * come seldom there are no looks at all, so that an idle or nearly idle vGPU never wakes up for
 * nothing. All times are microseconds of one monotonic clock.
 */
#ifndef ENGINE_POLLER_H
#define ENGINE_POLLER_H

#include <glib.h>
#include <stdbool.h>

/**
 * struct poller - zeroed to begin with
 * @last: when a request was last seen; 0: never
 * @gap: the usual time between requests
 */
struct poller {
    gint64 last;
    gint64 gap;
};

/* Requests were seen at @now. */
void poller_seen(struct poller *poller, gint64 now);

/* How long to sleep before the next look; -1: no more looks, the guest has to ring. */
gint64 poller_interval(const struct poller *poller, gint64 now);

#endif /* ENGINE_POLLER_H */
