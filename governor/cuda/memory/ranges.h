/* SPDX-License-Identifier: MIT */
/*
 * What is charged for what the program has, by address or handle. Many threads may use one at a
 * time; those whose keys are not near each other do not wait for each other.
 */
#ifndef GOVERNOR_CUDA_RANGES_H
#define GOVERNOR_CUDA_RANGES_H

#include "charge.h"

#define RANGES_SHARDS 64

struct range {
    uint64_t key;
    struct charge charge;
};

/* In the order of keys, in memory of its own. */
struct ranges_shard {
    pthread_mutex_t lock;
    struct range *at;
    unsigned int count;
    unsigned int room;
};

struct ranges {
    struct ranges_shard shards[RANGES_SHARDS];
};

/* Those of this library. A kind each, for a handle may have the number of an address. */
extern struct ranges ranges_pointers __attribute__((visibility("hidden")));
extern struct ranges ranges_arrays __attribute__((visibility("hidden")));
extern struct ranges ranges_externals __attribute__((visibility("hidden")));
/* What executable graphs allocate when they run; nothing is charged by them. */
extern struct ranges ranges_graphs __attribute__((visibility("hidden")));

/* Instead of what was under @key, which the caller is given in @charge. False: no memory. */
bool ranges_put(struct ranges *ranges, uint64_t key, struct charge *charge);
/* What is under @key now. False: nothing. */
bool ranges_get(struct ranges *ranges, uint64_t key, struct charge *charge);
/* Takes it out. False: there is none. */
bool ranges_take(struct ranges *ranges, uint64_t key, struct charge *charge);
/* Takes out one that goes with @context. False: there is none left. */
bool ranges_take_of(struct ranges *ranges, CUcontext context, struct charge *charge);

#endif
