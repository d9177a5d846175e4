// SPDX-License-Identifier: MIT
#include "places.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#define FIRST_ROOM 256u

/* @known: a bit for each attribute. What is known does not change while the memory is there. */
struct facts {
    struct facts *next; /* of those that no memory has */
    _Atomic uint32_t known;
    _Atomic uint64_t value[PLACE_FACTS];
    _Atomic uint64_t rest[PLACE_FACTS]; /* written, and result << 32 */
};

struct place {
    _Atomic uint64_t address, bytes;
    _Atomic(struct facts *) facts;
};

/*
 * Sorted by address. Who reads looks at @changes, odd while something changes, before and after;
 * what lies between is read, and written, in order. A table that has become too small, and facts of
 * memory that is gone, stay readable.
 */
static _Atomic uint64_t changes;
static _Atomic(struct place *) places;
static _Atomic size_t count;
static size_t room;
static struct facts *unused;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of who writes */

static uint64_t load_word(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}

static void store_word(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

/* The first that ends behind @address, of @end. */
static size_t place_behind(const struct place *table, size_t end, uint64_t address)
{
    size_t low = 0, high = end;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (load_word(&table[middle].address) + load_word(&table[middle].bytes) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whoever gets one must look at @changes afterwards. NULL: there is none. */
static struct place *place_at(uint64_t address)
{
    size_t end = atomic_load_explicit(&count, memory_order_acquire);
    struct place *table = atomic_load_explicit(&places, memory_order_acquire);
    size_t at = place_behind(table, end, address);

    return at < end && load_word(&table[at].address) <= address ? &table[at] : NULL;
}

static void begin_change(void)
{
    pthread_mutex_lock(&lock);
    atomic_store_explicit(&changes, load_word(&changes) + 1, memory_order_relaxed);
}

static void end_change(void)
{
    store_word(&changes, load_word(&changes) + 1);
    pthread_mutex_unlock(&lock);
}

static void move_place(struct place *to, const struct place *from)
{
    store_word(&to->address, load_word(&from->address));
    store_word(&to->bytes, load_word(&from->bytes));
    atomic_store_explicit(&to->facts, from->facts, memory_order_release);
}

static bool make_room(void)
{
    struct place *old = places, *made;

    if (count < room)
        return true;
    made = calloc(room ? 2 * room : FIRST_ROOM, sizeof(*made));
    if (!made)
        return false;
    for (size_t i = 0; i < count; i++)
        move_place(&made[i], &old[i]);
    atomic_store_explicit(&places, made, memory_order_release);
    room = room ? 2 * room : FIRST_ROOM;
    return true;
}

static struct facts *take_facts(void)
{
    struct facts *facts = unused;

    if (!facts)
        return calloc(1, sizeof(*facts));
    unused = facts->next;
    atomic_store_explicit(&facts->known, 0, memory_order_release);
    return facts;
}

static void remove_place(size_t at)
{
    struct facts *facts = places[at].facts;

    facts->next = unused;
    unused = facts;
    for (size_t i = at; i + 1 < count; i++)
        move_place(&places[i], &places[i + 1]);
    atomic_store_explicit(&count, count - 1, memory_order_release);
}

/* What the driver gives out is free: memory that was there has ended in a way that nobody saw. */
void place_add(uint64_t address, uint64_t bytes)
{
    struct facts *facts;
    size_t at;

    begin_change();
    at = place_behind(places, count, address);
    while (at < count && load_word(&places[at].address) < address + bytes)
        remove_place(at);
    facts = bytes && make_room() ? take_facts() : NULL;
    if (facts) {
        for (size_t i = count; i > at; i--)
            move_place(&places[i], &places[i - 1]);
        store_word(&places[at].address, address);
        store_word(&places[at].bytes, bytes);
        atomic_store_explicit(&places[at].facts, facts, memory_order_release);
        atomic_store_explicit(&count, count + 1, memory_order_release);
    }
    end_change();
}

void place_end(uint64_t address)
{
    size_t at;

    begin_change();
    at = place_behind(places, count, address);
    if (at < count && load_word(&places[at].address) == address)
        remove_place(at);
    end_change();
}

void place_end_all(void)
{
    begin_change();
    while (count)
        remove_place(count - 1);
    end_change();
}

void place_begin_child(void)
{
    pthread_mutex_init(&lock, NULL);
    atomic_store(&count, 0);
    atomic_store(&changes, 0);
}

bool place_is_known(uint64_t address)
{
    uint64_t before;
    bool is_known;

    do {
        before = load_word(&changes);
        is_known = place_at(address) != NULL;
    } while (before % 2 || load_word(&changes) != before);
    return is_known;
}

bool place_find_fact(uint64_t address, unsigned int attribute, struct place_fact *fact)
{
    uint64_t before = load_word(&changes), rest;
    const struct place *place = before % 2 || attribute >= PLACE_FACTS ? NULL : place_at(address);
    const struct facts *facts;

    if (!place)
        return false;
    facts = atomic_load_explicit(&place->facts, memory_order_acquire);
    if (!(atomic_load_explicit(&facts->known, memory_order_acquire) >> attribute & 1))
        return false;
    fact->value = load_word(&facts->value[attribute]);
    rest = load_word(&facts->rest[attribute]);
    fact->written = (uint32_t)rest;
    fact->result = (uint32_t)(rest >> 32);
    return load_word(&changes) == before;
}

uint64_t place_changes(void)
{
    return load_word(&changes);
}

void place_learn(uint64_t address, unsigned int attribute, const struct place_fact *fact,
                 uint64_t since)
{
    const struct place *place;
    struct facts *facts;

    if (attribute >= PLACE_FACTS)
        return;
    pthread_mutex_lock(&lock);
    place = since % 2 || load_word(&changes) != since ? NULL : place_at(address);
    facts = place ? place->facts : NULL;
    if (facts && !(facts->known >> attribute & 1)) {
        store_word(&facts->value[attribute], fact->value);
        store_word(&facts->rest[attribute], fact->written | (uint64_t)fact->result << 32);
        atomic_fetch_or_explicit(&facts->known, 1u << attribute, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
}
