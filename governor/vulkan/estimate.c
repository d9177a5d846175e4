// SPDX-License-Identifier: MIT
#include "estimate.h"

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

static uint32_t size_of(uint32_t commands)
{
    uint32_t size = 0;

    while (commands > 1 && size < ESTIMATE_SIZES - 1) {
        commands >>= 1;
        size++;
    }
    return size;
}

static uint32_t place_of(uint64_t key)
{
    return (uint32_t)(key >> 32) % ESTIMATE_KEYS;
}

static uint64_t mean(uint64_t old, uint64_t measured)
{
    if (measured >= old)
        return old + (measured - old) / NEW_WEIGHT;
    return old - (old - measured) / NEW_WEIGHT;
}

uint64_t estimate_of(const struct estimates *estimates, uint64_t key, uint32_t commands)
{
    uint64_t ns = estimates->by_size[size_of(commands)];

    if (estimates->known[place_of(key)].key == key)
        return estimates->known[place_of(key)].ns;
    return ns ? ns : ESTIMATE_UNKNOWN_NS;
}

/* xorshift */
static uint64_t estimates_random(struct estimates *estimates)
{
    estimates->random += !estimates->random;
    estimates->random ^= estimates->random << 13;
    estimates->random ^= estimates->random >> 7;
    estimates->random ^= estimates->random << 17;
    return estimates->random;
}

bool estimate_stands_in(struct estimates *estimates, uint64_t key)
{
    uint32_t at = place_of(key);

    return estimates->known[at].key == key && !estimates->known[at].watched &&
           estimates_random(estimates) % STANDS_IN;
}

void estimate_learn(struct estimates *estimates, uint64_t key, uint32_t commands,
                    uint64_t measured_ns)
{
    uint32_t at = place_of(key);
    uint64_t *size = &estimates->by_size[size_of(commands)];

    if (estimates->known[at].key != key) {
        estimates->known[at].key = key;
        estimates->known[at].ns = measured_ns;
        estimates->known[at].watched = 0;
    } else if (measured_ns > estimates->known[at].ns + estimates->known[at].ns / 4) {
        estimates->known[at].watched = WATCHED;
    } else if (estimates->known[at].watched) {
        estimates->known[at].watched--;
    }
    estimates->known[at].ns = mean(estimates->known[at].ns, measured_ns);
    *size = *size ? mean(*size, measured_ns) : measured_ns;
}
