// SPDX-License-Identifier: MIT
/*
 * The CUDA door's maps against models of them: charges by address, and mapped ranges of addresses.
 * An input is steps of four bytes: what, which key or place, and how much.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mappings.h"
#include "ranges.h"

#define KEYS   256
#define PLACES 256

#define INVARIANT(condition)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static struct ranges ranges;
static struct mappings mappings;
/* Bytes of 0: there is none. */
static struct charge charges[KEYS];
/* The number of the mapping that each place belongs to; 0: of none. */
static unsigned int owners[PLACES];
static unsigned int made;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of many shards, of one shard, and the ends of a word. */
static uint64_t key_of(uint8_t number)
{
    if (number < 2)
        return number ? UINT64_MAX : 0;
    return number % 2 ? 0x7f0000000000ull + ((uint64_t)number << 21) : 0x560000ull + number;
}

static bool is_same(const struct charge *a, const struct charge *b)
{
    return a->bytes == b->bytes && a->context == b->context;
}

static void put(uint8_t number, uint16_t bytes)
{
    struct charge charge = {.bytes = bytes + 1u, .context = (CUcontext)(uintptr_t)(bytes % 3)};
    struct charge is = charge;

    INVARIANT(ranges_put(&ranges, key_of(number), &charge));
    INVARIANT(is_same(&charge, &charges[number]));
    charges[number] = is;
}

static void take(uint8_t number, bool keep)
{
    struct charge charge = {0};
    bool found = keep ? ranges_get(&ranges, key_of(number), &charge)
                      : ranges_take(&ranges, key_of(number), &charge);

    INVARIANT(found == (charges[number].bytes != 0));
    INVARIANT(!found || is_same(&charge, &charges[number]));
    if (!keep)
        charges[number] = (struct charge){0};
}

/* A context ends: each of its charges comes once, and no other. */
static void take_all_of(CUcontext context)
{
    struct charge charge;
    uint64_t bytes = 0, expected = 0;

    for (unsigned int i = 0; i < KEYS; i++) {
        if (charges[i].context != context || !charges[i].bytes)
            continue;
        expected += charges[i].bytes;
        charges[i] = (struct charge){0};
    }
    while (ranges_take_of(&ranges, context, &charge)) {
        INVARIANT(charge.context == context && charge.bytes);
        bytes += charge.bytes;
    }
    INVARIANT(bytes == expected);
}

/* As the door does: nothing is mapped where something is. */
static void map(uint8_t at, uint8_t length)
{
    struct mapping mapping = {.at = at, .bytes = length % 16 + 1u};

    if (at + mapping.bytes > PLACES)
        return;
    for (uint64_t i = at; i < at + mapping.bytes; i++)
        if (owners[i])
            return;
    mapping.physical = (struct physical *)(uintptr_t)++made;
    INVARIANT(mappings_make_room(&mappings, 1));
    mappings_add(&mappings, &mapping);
    for (uint64_t i = at; i < at + mapping.bytes; i++)
        owners[i] = made;
}

static void unmap(uint8_t at)
{
    unsigned int index = mappings_from(&mappings, at), owner;

    if (index == mappings.count)
        return;
    owner = (unsigned int)(uintptr_t)mappings.list[index].physical;
    mappings_remove(&mappings, index);
    for (unsigned int i = 0; i < PLACES; i++)
        owners[i] = owners[i] == owner ? 0 : owners[i];
}

static void find(uint8_t at)
{
    const struct mapping *mapping = mappings_find(&mappings, at);

    INVARIANT(!mapping == !owners[at]);
    INVARIANT(!mapping || (uintptr_t)mapping->physical == owners[at]);
}

static void step(const uint8_t *data)
{
    switch (data[0] % 8) {
    case 0:
    case 1:
        put(data[1], (uint16_t)(data[2] | data[3] << 8));
        break;
    case 2:
        take(data[1], false);
        break;
    case 3:
        take(data[1], true);
        break;
    case 4:
        take_all_of((CUcontext)(uintptr_t)(data[1] % 3));
        break;
    case 5:
        map(data[1], data[2]);
        break;
    case 6:
        unmap(data[1]);
        break;
    default:
        find(data[1]);
    }
}

/* The maps are sorted and without overlaps, and hold what the models do. */
static void check(void)
{
    unsigned int count = 0, there = 0;

    for (unsigned int i = 0; i < RANGES_SHARDS; i++) {
        count += ranges.shards[i].count;
        for (unsigned int k = 1; k < ranges.shards[i].count; k++)
            INVARIANT(ranges.shards[i].at[k - 1].key < ranges.shards[i].at[k].key);
    }
    for (unsigned int i = 0; i < KEYS; i++)
        there += charges[i].bytes != 0;
    INVARIANT(count == there);
    for (unsigned int i = 1; i < mappings.count; i++)
        INVARIANT(mappings.list[i - 1].at + mappings.list[i - 1].bytes <= mappings.list[i].at);
}

static void reset(void)
{
    for (unsigned int i = 0; i < 3; i++)
        take_all_of((CUcontext)(uintptr_t)i);
    while (mappings.count)
        mappings_remove(&mappings, mappings.count - 1);
    memset(owners, 0, sizeof(owners));
    made = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool is_ready;

    for (unsigned int i = 0; !is_ready && i < RANGES_SHARDS; i++)
        pthread_mutex_init(&ranges.shards[i].lock, NULL);
    is_ready = true;
    for (size_t i = 0; i + 4 <= size; i += 4)
        step(&data[i]);
    check();
    reset();
    return 0;
}
