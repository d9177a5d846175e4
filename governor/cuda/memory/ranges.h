/* SPDX-License-Identifier: MIT */
/*
 * Charges by address or handle. Thread-safe; threads rarely wait for each other, because keys are
 * spread over shards.
 */
#ifndef GOVERNOR_CUDA_RANGES_H
#define GOVERNOR_CUDA_RANGES_H

#include "charge.h"

#define RANGES_SHARDS 64

struct range {
    uint64_t key;
    struct charge charge;
};

/* Sorted by key. */
struct ranges_shard {
    pthread_mutex_t lock;
    struct range *at;
    unsigned int count;
    unsigned int room;
};

struct ranges {
    struct ranges_shard shards[RANGES_SHARDS];
};

/* One map for each kind, because a handle can have the same value as an address. */
extern struct ranges ranges_pointers __attribute__((visibility("hidden")));
extern struct ranges ranges_arrays __attribute__((visibility("hidden")));
extern struct ranges ranges_externals __attribute__((visibility("hidden")));
/* How much executable graphs allocate when they run; nothing is charged through these. */
extern struct ranges ranges_graphs __attribute__((visibility("hidden")));
/* Which pool memory is of; nothing is charged through these either. */
extern struct ranges ranges_pooled __attribute__((visibility("hidden")));

/* Replaces the charge of @key; the previous one is returned in @charge. False: no memory. */
bool ranges_put(struct ranges *ranges, uint64_t key, struct charge *charge);
/* Copies the charge of @key. False: there is none. */
bool ranges_get(struct ranges *ranges, uint64_t key, struct charge *charge);
/* Removes and returns the charge of @key. False: there is none. */
bool ranges_take(struct ranges *ranges, uint64_t key, struct charge *charge);
/* Removes and returns one charge of @context. False: none is left. */
bool ranges_take_of(struct ranges *ranges, CUcontext context, struct charge *charge);

#endif
