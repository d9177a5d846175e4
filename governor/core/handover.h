/* SPDX-License-Identifier: MIT */
/*
 * How long a slice takes from its lease to its first submission: the arbiter's timer, the wake-up
 * and the member's way back to the GPU. On an idle host that is some 100 us, on one whose
 * processors are busy milliseconds. The next slice is told so long before the GPU is free.
 */
#ifndef GOVERNOR_HANDOVER_H
#define GOVERNOR_HANDOVER_H

#include <stdint.h>

/**
 * struct handover
 * @mean_ns, @deviation_ns: of the last handovers
 */
struct handover {
    double mean_ns;
    double deviation_ns;
};

/* @ns: from the time at which the lease was due until the submission. Believed up to a bound. */
void handover_learn(struct handover *handover, uint64_t ns);

/* How long before the end of the last holder's work to tell the slice; ns, bounded. */
uint64_t handover_lead(const struct handover *handover);

#endif
