// SPDX-License-Identifier: MIT
#include "costs.h"

/* A new measurement's weight is 1/4, as in the Vulkan layer. */
#define NEW_WEIGHT 4

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 32) * 0x9E3779B97F4A7C15u;
    return value ^ value >> 29;
}

/* By the power of two of the threads: a function is often launched for batches of many sizes. */
uint64_t costs_key(const void *function, uint64_t threads)
{
    uint64_t size = threads ? 64 - (uint64_t)__builtin_clzll(threads) : 0;

    return mix((uintptr_t)function + (size << 56)) | 1;
}

uint64_t costs_of(const struct costs *costs, uint64_t key)
{
    return costs->places[key / 2 % COSTS_PLACES].key == key
               ? costs->places[key / 2 % COSTS_PLACES].ns
               : 0;
}

void costs_learn(struct costs *costs, uint64_t key, uint64_t ns)
{
    uint64_t *known = &costs->places[key / 2 % COSTS_PLACES].ns;

    ns = ns ? ns : 1;
    if (costs->places[key / 2 % COSTS_PLACES].key != key)
        *known = ns;
    else if (ns >= *known)
        *known += (ns - *known) / NEW_WEIGHT;
    else
        *known -= (*known - ns) / NEW_WEIGHT;
    costs->places[key / 2 % COSTS_PLACES].key = key;
}
