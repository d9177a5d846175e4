/* SPDX-License-Identifier: MIT */
/*
 * What a handover of the GPU takes, on the host and on the GPU, and what follows from it.
 *
 * On the host: from a slice's lease to its first submission: the arbiter's timer, the wake-up and
 * the member's way back to the GPU. On an idle host that is some 100 us, on one whose processors
 * are busy milliseconds. The next slice is told so long before the GPU is free (lead), and a member
 * keeps twice as much on the GPU (depth), because its threads are woken no sooner between two
 * submissions.
 *
 * On the GPU: from the end of one slice's work to the begin of another's that was there by then. A
 * lease is so long that this is a small part of it.
 */
#ifndef GOVERNOR_HANDOVER_H
#define GOVERNOR_HANDOVER_H

#include "clock.h"

#include <stdint.h>

/* Of the last times. */
struct handover_time {
    double mean_ns;
    double deviation_ns;
};

/**
 * struct handover
 * @all: of the last handovers; @prompt: of those in which no thread was held up
 */
struct handover {
    struct handover_time all;
    struct handover_time prompt;
};

/* @ns: from the time at which the lease was due until the submission. Believed up to a bound. */
void handover_learn(struct handover *handover, uint64_t ns);

/* How long before the end of the last holder's work to tell the slice; ns, bounded. */
uint64_t handover_lead(const struct handover *handover);

/* How much its members may queue on the GPU; ns, bounded. */
uint64_t handover_depth(const struct handover *handover);

#define HANDOVER_PAIRS 16

/* The mean of the last changes from one slice's work to another's. */
struct handover_pair {
    uint32_t from, to;
    double mean_ns;
};

/**
 * struct gpu_handover - of the GPU
 * @pairs: the last ones, @count in all
 * @mean_ns: of the pair at the lower quartile; 0: none was seen. A slice that says that its work
 * began late or ended early spoils its own pairs only: of six among three slices, these are four.
 */
struct gpu_handover {
    struct handover_pair pairs[HANDOVER_PAIRS];
    uint32_t count;
    double mean_ns;
};

/* The GPU took @ns from @from's work to @to's. Believed up to a bound. */
void gpu_handover_learn(struct gpu_handover *handover, uint32_t from, uint32_t to, uint64_t ns);

/* Nobody has returned from a pause for this time: leases may be long. */
#define HANDOVER_STEADY_NS (100 * NS_PER_MS)

/*
 * No lease is to be shorter; 0 if nothing is known. Bounded. @steady_ns: for how long nobody has
 * returned from a pause, and had to wait for the end of one.
 */
uint64_t gpu_handover_lease(const struct gpu_handover *handover, uint64_t steady_ns);

#endif
