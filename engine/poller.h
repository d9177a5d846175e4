/* SPDX-License-Identifier: MIT */
/*
 * Decides whether the engine polls the queues for a while after a request, and how often. While it
 * does, the guest need not ring. A doorbell costs an exit of the guest and a call of the VMM; a
 * poll costs one system call.
 *
 * It adapts: the time between polls is a part of the usual time between requests, and if those are
 * rare there are no polls at all, so that an idle or nearly idle vGPU never wakes up for nothing.
 * All times are microseconds of one monotonic clock.
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

/* How long to sleep before the next poll; -1: no more polls, the guest has to ring. */
gint64 poller_interval(const struct poller *poller, gint64 now);

#endif /* ENGINE_POLLER_H */
