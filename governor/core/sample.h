/* SPDX-License-Identifier: MIT */
/*
 * What a member says on its page, taken once and made plausible: the page is the member's to write,
 * and may change or lie at any time. Counters never go back, and nothing is so big that sums of it
 * overflow.
 */
#ifndef GOVERNOR_SAMPLE_H
#define GOVERNOR_SAMPLE_H

#include "governor_protocol.h"

#include <stdbool.h>

/* Most that is believed to be in flight. */
#define SAMPLE_MOST_IN_FLIGHT_NS 10000000000ull

/* As in struct governor_usage. @gpu_ns has all that ended by @counted_until_ns. */
struct sample {
    uint64_t submissions;
    uint64_t gpu_ns;
    uint64_t in_flight_ns;
    uint64_t waited_ns;
    uint64_t throttled_ns;
    uint64_t began_at_ns;
    uint64_t ended_at_ns;
    uint64_t counted_until_ns;
    uint64_t waiting_at_ns;
    bool waiting;
};

/* Takes @page into @sample, which has the one before, or zeros. */
void sample_take(struct sample *sample, const struct governor_usage *page, uint64_t now);

/* For how long what is in flight has been executing. */
uint64_t sample_elapsed(const struct sample *sample, uint64_t now);

/* How much of what is in flight is still to come, as far as was estimated. */
uint64_t sample_remaining(const struct sample *sample, uint64_t now);

/* All that has been used, with what is in flight: as estimated, or as long as it has taken already.
 */
uint64_t sample_spent(const struct sample *sample, uint64_t now);

#endif
