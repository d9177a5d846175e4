/* SPDX-License-Identifier: MIT */
/*
 * Events as times of CLOCK_MONOTONIC. The driver tells only how far apart two events are, so the
 * distance of the card's clock from the host's is learnt: an end is seen some time after it was,
 * and the shortest of these delays counts.
 *
 * Not thread-safe.
 */
#ifndef GOVERNOR_CUDA_EVENT_CLOCK_H
#define GOVERNOR_CUDA_EVENT_CLOCK_H

#include <stdint.h>

/**
 * struct event_clock
 * @card_ns: the card's time of the last end, from the first one on
 * @offset_ns: what is to be added for CLOCK_MONOTONIC; 0: nothing is known
 */
struct event_clock {
    double card_ns;
    double offset_ns;
};

/*
 * An end that came @after_ns after the last one (below 0: before it) was seen at @now, by
 * CLOCK_MONOTONIC. Returns when it was, never later than @now.
 */
uint64_t event_clock_see(struct event_clock *clock, double after_ns, uint64_t now);

/* Its events are gone, so the next end is the first one. */
void event_clock_restart(struct event_clock *clock);

/* The last end is now one that came @after_ns after the one before. */
void event_clock_advance(struct event_clock *clock, double after_ns);

#endif
