/* SPDX-License-Identifier: MIT */
/* How long a launch of a function or a graph takes, from earlier measurements. Not thread-safe. */
#ifndef GOVERNOR_CUDA_COSTS_H
#define GOVERNOR_CUDA_COSTS_H

#include <stdint.h>

#define COSTS_PLACES 1024u

struct costs {
    struct {
        uint64_t key;
        uint64_t ns;
    } places[COSTS_PLACES];
};

/* What tells apart launches that take different times: what is launched, and about how much. */
uint64_t costs_key(const void *function, uint64_t threads);

/* Nanoseconds of one launch; 0: unknown. */
uint64_t costs_of(const struct costs *costs, uint64_t key);

/* One launch took @ns. */
void costs_learn(struct costs *costs, uint64_t key, uint64_t ns);

#endif
