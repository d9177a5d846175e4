/* SPDX-License-Identifier: MIT */
/*
 * How long work will take, from earlier measurements: of the same work, or else of work of about
 * the same size. Nanoseconds; not thread-safe.
 */
#ifndef GOVERNOR_LANE_LEARN_H
#define GOVERNOR_LANE_LEARN_H

#include <stdbool.h>
#include <stdint.h>

/* Before the first measurement. */
#define LEARN_UNKNOWN_NS 100000u

#define LEARN_KEYS  1024u
#define LEARN_SIZES 8u

/**
 * struct learned_time - of the last key that came to its place; 0: none did
 * @watched: how many more of the key are to be measured without exception
 */
struct learned_time {
    uint64_t key;
    uint64_t ns;
    uint32_t watched;
};

/**
 * struct learned - by key and by the power of two of the size; 0: not measured yet
 * @random: any number that the program does not know
 */
struct learned {
    struct learned_time known[LEARN_KEYS];
    uint64_t by_size[LEARN_SIZES];
    uint64_t random;
};

/* Adds what tells work apart to its key, which begins with 0. */
uint64_t learn_key(uint64_t key, uint64_t part);

/* Of one with @key; 0: not measured yet. */
uint64_t learn_known(const struct learned *learned, uint64_t key);
/* The same; if it was not measured yet, what work of @size took. */
uint64_t learn_estimate(const struct learned *learned, uint64_t key, uint32_t size);
/* Whether work of @key need not be measured this time, because it was measured recently. */
bool learn_stands_in(struct learned *learned, uint64_t key);
/* One with @key, of @size, took @ns. */
void learn_add(struct learned *learned, uint64_t key, uint32_t size, uint64_t ns);

#endif
