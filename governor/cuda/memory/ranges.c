// SPDX-License-Identifier: MIT
#include "ranges.h"

#include <stdlib.h>
#include <string.h>

#include "forks.h"

#define EVERY_SHARD                                                                                \
    {                                                                                              \
        .shards = { [0 ... RANGES_SHARDS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER} }              \
    }

struct ranges ranges_pointers = EVERY_SHARD;
struct ranges ranges_arrays = EVERY_SHARD;
struct ranges ranges_externals = EVERY_SHARD;
struct ranges ranges_graphs = EVERY_SHARD;
struct ranges ranges_pooled = EVERY_SHARD;

/* Addresses are 512 bytes to 2 MiB apart, handles less. */
static struct ranges_shard *shard_of(struct ranges *ranges, uint64_t key)
{
    uint64_t mixed = (key >> 4) * 0x9e3779b97f4a7c15ull;

    return &ranges->shards[mixed >> 58];
}

/* The index of @key, or where it would be. */
static unsigned int place_of(const struct ranges_shard *shard, uint64_t key)
{
    unsigned int low = 0, high = shard->count;

    while (low < high) {
        unsigned int middle = low + (high - low) / 2;

        if (shard->at[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_key(const struct ranges_shard *shard, unsigned int place, uint64_t key)
{
    return place < shard->count && shard->at[place].key == key;
}

static bool make_place(struct ranges_shard *shard, unsigned int place)
{
    if (shard->count == shard->room) {
        unsigned int room = shard->room ? shard->room * 2 : 16;
        struct range *at = realloc(shard->at, room * sizeof(*at));

        if (!at)
            return false;
        shard->at = at;
        shard->room = room;
    }
    memmove(&shard->at[place + 1], &shard->at[place], (shard->count - place) * sizeof(*shard->at));
    shard->count++;
    return true;
}

static void close_place(struct ranges_shard *shard, unsigned int place)
{
    shard->count--;
    memmove(&shard->at[place], &shard->at[place + 1], (shard->count - place) * sizeof(*shard->at));
}

bool ranges_put(struct ranges *ranges, uint64_t key, struct charge *charge)
{
    struct ranges_shard *shard = shard_of(ranges, key);
    struct charge before = {0};
    unsigned int place;
    bool put = true;

    pthread_mutex_lock(&shard->lock);
    place = place_of(shard, key);
    if (has_key(shard, place, key))
        before = shard->at[place].charge;
    else
        put = make_place(shard, place);
    if (put) {
        shard->at[place] = (struct range){.key = key, .charge = *charge};
        *charge = before;
    }
    pthread_mutex_unlock(&shard->lock);
    return put;
}

bool ranges_get(struct ranges *ranges, uint64_t key, struct charge *charge)
{
    struct ranges_shard *shard = shard_of(ranges, key);
    unsigned int place;
    bool found;

    pthread_mutex_lock(&shard->lock);
    place = place_of(shard, key);
    found = has_key(shard, place, key);
    if (found)
        *charge = shard->at[place].charge;
    pthread_mutex_unlock(&shard->lock);
    return found;
}

bool ranges_take(struct ranges *ranges, uint64_t key, struct charge *charge)
{
    struct ranges_shard *shard = shard_of(ranges, key);
    unsigned int place;
    bool found;

    pthread_mutex_lock(&shard->lock);
    place = place_of(shard, key);
    found = has_key(shard, place, key);
    if (found) {
        *charge = shard->at[place].charge;
        close_place(shard, place);
    }
    pthread_mutex_unlock(&shard->lock);
    return found;
}

static bool take_of(struct ranges_shard *shard, CUcontext context, struct charge *charge)
{
    bool found = false;

    pthread_mutex_lock(&shard->lock);
    for (unsigned int i = shard->count; i > 0 && !found; i--) {
        found = shard->at[i - 1].charge.context == context;
        if (found) {
            *charge = shard->at[i - 1].charge;
            close_place(shard, i - 1);
        }
    }
    pthread_mutex_unlock(&shard->lock);
    return found;
}

bool ranges_take_of(struct ranges *ranges, CUcontext context, struct charge *charge)
{
    for (unsigned int i = 0; i < RANGES_SHARDS; i++) {
        if (take_of(&ranges->shards[i], context, charge))
            return true;
    }
    return false;
}

/* Maps that the parent's threads were changing are abandoned. */
static void forget_changes(struct ranges *ranges)
{
    for (unsigned int i = 0; i < RANGES_SHARDS; i++) {
        struct ranges_shard *shard = &ranges->shards[i];

        pthread_mutex_init(&shard->lock, NULL);
        shard->at = NULL;
        shard->count = shard->room = 0;
    }
}

void ranges_forget_parent(void)
{
    forget_changes(&ranges_pointers);
    forget_changes(&ranges_arrays);
    forget_changes(&ranges_externals);
    forget_changes(&ranges_graphs);
    forget_changes(&ranges_pooled);
}
