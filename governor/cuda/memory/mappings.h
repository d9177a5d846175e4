/* SPDX-License-Identifier: MIT */
/* Mapped ranges of addresses, in order, without overlaps. Pure; the caller locks. */
#ifndef GOVERNOR_CUDA_MAPPINGS_H
#define GOVERNOR_CUDA_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

struct physical;

/* @change: the call of the driver that is unmapping it; 0: none */
struct mapping {
    uint64_t at;
    uint64_t bytes;
    struct physical *physical;
    uint64_t change;
};

struct mappings {
    struct mapping *list;
    unsigned int count;
    unsigned int room;
};

/* The index of the first mapping that ends after @at; mappings->count: none. */
unsigned int mappings_from(const struct mappings *mappings, uint64_t at);
/* The mapping that contains @at; NULL: none. */
const struct mapping *mappings_find(const struct mappings *mappings, uint64_t at);
/* Makes room for @more, so that as many calls of mappings_add() cannot fail. */
bool mappings_make_room(struct mappings *mappings, unsigned int more);
void mappings_add(struct mappings *mappings, const struct mapping *mapping);
void mappings_remove(struct mappings *mappings, unsigned int index);

#endif
