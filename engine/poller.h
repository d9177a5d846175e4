/* SPDX-License-Identifier: MIT */
/*
 * Decides whether the engine polls the queues for a while after a request. While it does, the guest
 * need not ring, which costs it an exit and a call of the VMM. A look costs one system call, and
 * the request waits for it.
 *
 * So it polls only while requests follow each other so closely that few looks are in vain: with
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

/* How long to sleep before the next poll; -1: no more polls, the guest has to ring. */
gint64 poller_interval(const struct poller *poller, gint64 now);

#endif /* ENGINE_POLLER_H */
