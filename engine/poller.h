/* SPDX-License-Identifier: MIT */
/*
 * Decides how long the driver looks for requests by itself after one (poll_us of QUEUE_EXCHANGE).
 * While it does, the guest need not ring, which costs it an exit and a call of the VMM.
 *
 * So it looks only while requests follow each other so closely that few looks are in vain: with
 * requests further apart a doorbell is cheaper for both, and sooner. An idle vGPU is never polled.
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

/* How long to look for the next one; 0: not at all, the guest has to ring. */
gint64 poller_time(const struct poller *poller, gint64 now);

#endif /* ENGINE_POLLER_H */
