// SPDX-License-Identifier: MIT
#include "learn.h"

/*
 * A new measurement's weight is 1/4: four frames after a change of scene the estimate has moved two
 * thirds of the way.
 */
#define NEW_WEIGHT 4
/*
 * One of this many submissions is measured, at random: whoever knew which could do most of its work
 * in the others.
 */
#define STANDS_IN 8
/* After a measurement that is more than a quarter longer, so many in a row are measured. */
#define WATCHED 8

uint64_t learn_key(uint64_t key, uint64_t part)
{
    key = (key ^ part) * 0x9E3779B97F4A7C15u;
    return (key ^ key >> 29) | 1;
}

#define PLACE_OF(key) ((uint32_t)((key) >> 32) % LEARN_KEYS)

static uint32_t size_of(uint32_t size)
{
    uint32_t power = 0;

    while (size > 1 && power < LEARN_SIZES - 1) {
        size >>= 1;
        power++;
    }
    return power;
}

static uint64_t weigh_in(uint64_t old, uint64_t measured)
{
    if (measured >= old)
        return old + (measured - old) / NEW_WEIGHT;
    return old - (old - measured) / NEW_WEIGHT;
}

uint64_t learn_known(const struct learned *learned, uint64_t key)
{
    const struct learned_time *at = &learned->known[PLACE_OF(key)];

    return at->key == key ? at->ns : 0;
}

uint64_t learn_estimate(const struct learned *learned, uint64_t key, uint32_t size)
{
    uint64_t known = learn_known(learned, key), ns = learned->by_size[size_of(size)];

    if (known)
        return known;
    return ns ? ns : LEARN_UNKNOWN_NS;
}

/* xorshift */
static uint64_t next_random(struct learned *learned)
{
    learned->random += !learned->random;
    learned->random ^= learned->random << 13;
    learned->random ^= learned->random >> 7;
    learned->random ^= learned->random << 17;
    return learned->random;
}

bool learn_stands_in(struct learned *learned, uint64_t key)
{
    return learn_known(learned, key) && !learned->known[PLACE_OF(key)].watched &&
           next_random(learned) % STANDS_IN;
}

void learn_add(struct learned *learned, uint64_t key, uint32_t size, uint64_t ns)
{
    struct learned_time *at = &learned->known[PLACE_OF(key)];
    uint64_t *by_size = &learned->by_size[size_of(size)];

    ns += !ns;
    if (at->key != key)
        *at = (struct learned_time){.key = key, .ns = ns};
    else if (ns > at->ns + at->ns / 4)
        at->watched = WATCHED;
    else if (at->watched)
        at->watched--;
    at->ns = weigh_in(at->ns, ns);
    *by_size = *by_size ? weigh_in(*by_size, ns) : ns;
}
