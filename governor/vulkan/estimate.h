/* SPDX-License-Identifier: MIT */
/*
 * How long work on a queue will take, from earlier measurements: of the same command buffers if
 * they were submitted before, otherwise of submissions with about as many. Nanoseconds; not
 * thread-safe.
 */
#ifndef GOVERNOR_VULKAN_ESTIMATE_H
#define GOVERNOR_VULKAN_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

/* Before the first measurement. */
#define ESTIMATE_UNKNOWN_NS 100000u

#define ESTIMATE_KEYS  256
#define ESTIMATE_SIZES 8

struct estimates {
    struct {
        uint64_t key;
        uint64_t ns;
        uint32_t watched; /* how many submissions are to be measured without exception */
    } known[ESTIMATE_KEYS];
    /* By the power of two of the number of command buffers; 0: not measured yet. */
    uint64_t by_size[ESTIMATE_SIZES];
    uint64_t random; /* any number that the program does not know */
};

uint64_t estimate_of(const struct estimates *estimates, uint64_t key, uint32_t commands);
/* Whether work of @key need not be measured this time, because it was measured recently. */
bool estimate_stands_in(struct estimates *estimates, uint64_t key);
void estimate_learn(struct estimates *estimates, uint64_t key, uint32_t commands,
                    uint64_t measured_ns);

/* Adds a command buffer to the key of work; begins with 0. */
static inline uint64_t estimate_key(uint64_t key, const void *command_buffer)
{
    return (key ^ (uintptr_t)command_buffer) * 0x9E3779B97F4A7C15u + 1;
}

#endif /* GOVERNOR_VULKAN_ESTIMATE_H */
