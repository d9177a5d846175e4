/* SPDX-License-Identifier: MIT */
/*
 * Memory of the driver's that the program has allocated, and not freed: what the driver says of a
 * pointer into it is the same until then, and so kept here. What comes from elsewhere (globals,
 * graphs, other processes, mapped handles) is not in it.
 */
#ifndef CUDA_REMOTE_GUEST_PLACES_H
#define CUDA_REMOTE_GUEST_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#define PLACE_FACTS 16u /* numbers of CUpointer_attribute below it */

/* @result: of asking for this one alone. @written: a bit for each byte of @value. */
struct place_fact {
    uint64_t value;
    uint32_t written;
    uint32_t result;
};

void place_add(uint64_t address, uint64_t bytes);
/* Of memory that begins there, before the driver is told to free it. */
void place_end(uint64_t address);
/* All of it: contexts end with theirs. */
void place_end_all(void);
bool place_is_known(uint64_t address);
/* In a child of fork(): another thread may have been changing something. */
void place_begin_child(void);
/* False: that is not known of the memory there. */
bool place_find_fact(uint64_t address, unsigned int attribute, struct place_fact *fact);
/* To place_learn() what the driver says from now on. */
uint64_t place_changes(void);
/* Nothing is learned if memory was allocated or freed since @changes. */
void place_learn(uint64_t address, unsigned int attribute, const struct place_fact *fact,
                 uint64_t changes);

#endif
