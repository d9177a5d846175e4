/* SPDX-License-Identifier: MIT */
/*
 * A member's statements on its page, read once and made plausible. The member may write its page at
 * any time, and may lie. Counters never go back, and nothing is so big that sums overflow.
 */
#ifndef GOVERNOR_SAMPLE_H
#define GOVERNOR_SAMPLE_H

#include "governor_protocol.h"

#include <stdbool.h>

/*
 * @backlog_ns: what is left of tracked submissions. The rest as in struct governor_class_usage.
 * @gpu_ns contains all work that ended by @counted_until_ns. @waiting_beside: some thread waits
 * whose submission may be what the work in flight waits for.
 */
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
    uint64_t came_at_ns;
    uint64_t free_submissions;
    uint64_t backlog_ns;
    bool waiting;
    bool waiting_beside;
};

/*
 * Reads @page into @sample, which has the last sample, or zeros. @came_at: the page's word of the
 * same class; NULL: there is none.
 */
void sample_take(struct sample *sample, const struct governor_class_usage *page,
                 const _Atomic uint64_t *came_at, uint64_t now);

/* How long the work in flight has been executing. */
uint64_t sample_elapsed(const struct sample *sample, uint64_t now);

/* How much of the work in flight is still to come, by the estimate. */
uint64_t sample_remaining(const struct sample *sample, uint64_t now);

/* All use including work in flight: by the estimate, or by the time that it has taken already. */
uint64_t sample_spent(const struct sample *sample, uint64_t now);

#endif
