// SPDX-License-Identifier: MIT
/*
 * What the driver has handed out, by the numbers that the program knows. An object that ends takes
 * those that end with it out of the table, too: the driver would follow their addresses into memory
 * that is no longer theirs.
 */
#include "worker.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define SLOTS       (1u << 20)
#define FIRST       1u
#define BUCKETS     (1u << 16)
#define GENERATIONS (1u << 24)

/* @next: of the bucket, or of the free ones; 0: none. */
struct slot {
    void *real;
    uint64_t parent;
    uint32_t generation;
    uint32_t next;
    uint32_t references; /* of one that was handed out, more than once */
    uint8_t type;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *slots; /* as many as SLOTS; the host gives what is touched */
static uint32_t used = FIRST, free_ones;
static uint32_t buckets[BUCKETS];

static uint32_t *bucket_of(unsigned int type, const void *real)
{
    uint64_t hash = ((uint64_t)(uintptr_t)real ^ type) * 0x9e3779b97f4a7c15ull;

    return &buckets[hash >> 48];
}

static inline uint64_t number_of(uint32_t index)
{
    return index | (uint64_t)slots[index].type << 32 | (uint64_t)slots[index].generation << 40;
}

static inline struct slot *slot_of(uint64_t number)
{
    uint32_t index = (uint32_t)number;

    if (!slots || index < FIRST || index >= used || !slots[index].type ||
        number_of(index) != number)
        return NULL;
    return &slots[index];
}

bool object_find(unsigned int type, uint64_t number, void **real)
{
    struct slot *slot;
    bool is_known = false;

    if (!number || (type == OBJECT_CUstream && number <= 2)) {
        *real = (void *)(uintptr_t)number;
        return true;
    }
    pthread_mutex_lock(&lock);
    slot = slot_of(number);
    if (slot && slot->type == type) {
        *real = slot->real;
        is_known = true;
    }
    pthread_mutex_unlock(&lock);
    return is_known;
}

static uint32_t take_slot(void)
{
    uint32_t index = free_ones;

    if (!slots) {
        void *at = mmap(NULL, SLOTS * sizeof(*slots), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (at == MAP_FAILED)
            return 0;
        slots = at;
    }
    if (index) {
        free_ones = slots[index].next;
        return index;
    }
    return used < SLOTS ? used++ : 0;
}

static uint64_t add_object(unsigned int type, void *real, uint64_t parent)
{
    uint32_t *bucket = bucket_of(type, real);
    uint32_t index = take_slot();

    if (!index)
        return 0;
    slots[index].real = real;
    slots[index].parent = parent;
    slots[index].type = (uint8_t)type;
    slots[index].references = 1;
    slots[index].next = *bucket;
    *bucket = index;
    return number_of(index);
}

uint64_t object_number(unsigned int type, void *real, uint64_t parent)
{
    uint64_t number = 0;

    if (!real || (type == OBJECT_CUstream && (uintptr_t)real <= 2))
        return (uintptr_t)real;
    pthread_mutex_lock(&lock);
    for (uint32_t at = slots ? *bucket_of(type, real) : 0; at && !number; at = slots[at].next)
        if (slots[at].real == real && slots[at].type == type) {
            number = number_of(at);
            slots[at].references++;
        }
    if (!number)
        number = add_object(type, real, parent);
    pthread_mutex_unlock(&lock);
    return number;
}

static void remove_slot(uint32_t index)
{
    struct slot *slot = &slots[index];
    uint32_t *at = bucket_of(slot->type, slot->real);

    while (*at != index)
        at = &slots[*at].next;
    *at = slot->next;
    slot->generation = (slot->generation + 1) % GENERATIONS;
    slot->type = OBJECT_NONE;
    slot->real = NULL;
    slot->next = free_ones;
    free_ones = index;
}

/* Types that are a parent; only for these all others are looked through. */
static bool has_children(unsigned int type)
{
    return type == OBJECT_CUcontext || type == OBJECT_CUmodule || type == OBJECT_CUlibrary ||
           type == OBJECT_CUgraph || type == OBJECT_CUgraphNode;
}

/* Before their parent, whose number they know. The depth is that of the types, and of graphs in
 * graphs, which the driver limits. */
static void remove_children(uint64_t number)
{
    for (uint32_t at = FIRST; at < used; at++) {
        if (!slots[at].type || slots[at].parent != number)
            continue;
        if (has_children(slots[at].type))
            remove_children(number_of(at));
        remove_slot(at);
    }
}

void object_end_children(uint64_t number)
{
    pthread_mutex_lock(&lock);
    if (slot_of(number) && has_children(slot_of(number)->type))
        remove_children(number);
    pthread_mutex_unlock(&lock);
}

void object_end(uint64_t number)
{
    struct slot *slot;

    object_end_children(number);
    pthread_mutex_lock(&lock);
    slot = slot_of(number);
    /* Each time that the driver hands out such a handle is a reference, and ends by a call. */
    if (slot && !(slot->type == OBJECT_CUmemGenericAllocationHandle && --slot->references))
        remove_slot((uint32_t)(slot - slots));
    pthread_mutex_unlock(&lock);
}

uint64_t object_parent(uint64_t number)
{
    uint64_t parent = 0;

    pthread_mutex_lock(&lock);
    if (slot_of(number))
        parent = slot_of(number)->parent;
    pthread_mutex_unlock(&lock);
    return parent;
}

/* With the lock held. */
static bool is_above(uint64_t number, uint64_t below)
{
    const struct slot *slot = slot_of(below);

    while (slot && below != number) {
        below = slot->parent;
        slot = slot_of(below);
    }
    return below == number;
}

bool object_adopt(uint64_t number, uint64_t parent)
{
    bool ok;

    pthread_mutex_lock(&lock);
    ok = slot_of(number) && !is_above(number, parent);
    if (ok)
        slot_of(number)->parent = parent;
    pthread_mutex_unlock(&lock);
    return ok;
}
