/* SPDX-License-Identifier: MIT */
/*
 * The arrival times of an online load's requests: a Poisson process of bursts, whose rate may
 * follow a daily curve. The same seed gives the same arrivals, so that runs with and without a
 * governor get the same requests.
 */
#ifndef GOVERNOR_LOAD_ARRIVALS_H
#define GOVERNOR_LOAD_ARRIVALS_H

#include <stdint.h>

/**
 * struct arrivals
 * @rate: requests per second, at the top of the curve if there is one
 * @burst: requests that arrive together
 * @day_s: seconds of a day; 0: constant rate
 * @seed: never 0
 * @next_ns: the next arrival, from the start of the load
 * @left: requests of the burst at next_ns that have not been taken
 */
struct arrivals {
    double rate;
    uint32_t burst;
    double day_s;
    uint64_t seed;
    uint64_t next_ns;
    uint32_t left;
};

/* To be called after the first four have been set. */
void arrivals_start(struct arrivals *arrivals);

/* Returns when the next request arrives, and advances to the one after it. */
uint64_t arrivals_take(struct arrivals *arrivals);

#endif /* GOVERNOR_LOAD_ARRIVALS_H */
