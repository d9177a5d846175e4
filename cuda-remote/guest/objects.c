// SPDX-License-Identifier: MIT
#include "remote.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define SLOTS  (1u << 20)
#define STRIDE 64u

/* @kept: of the object with @number_kept, which may be an earlier one of that place. */
struct slot {
    _Atomic uint64_t number;
    _Atomic(void *) kept;
    uint64_t number_kept;
};

/* A number that no object has. */
#define OBJECT_GONE (1ull << 63)

static struct slot *slots;
static uint64_t base;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool objects_begin(void)
{
    void *table = mmap(NULL, SLOTS * sizeof(*slots), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void *places = mmap(NULL, (size_t)SLOTS * STRIDE, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (table == MAP_FAILED || places == MAP_FAILED)
        return false;
    slots = table;
    base = (uintptr_t)places;
    return true;
}

static struct slot *slot_of(uint64_t value)
{
    uint64_t index = (value - base) / STRIDE;

    return slots && value > base && index < SLOTS && (value - base) % STRIDE == 0 ? &slots[index]
                                                                                  : NULL;
}

/* What is no object of ours is one that the worker does not know: it says what is wrong. */
uint64_t object_to_number(uint64_t value)
{
    struct slot *slot = slot_of(value);

    if (value <= 2)
        return value;
    return slot ? atomic_load_explicit(&slot->number, memory_order_relaxed) : ~0ull;
}

uint64_t object_of_number(uint64_t number)
{
    uint32_t index = (uint32_t)number;

    if (number <= 2 || !slots || index >= SLOTS)
        return number <= 2 ? number : 0;
    atomic_store_explicit(&slots[index].number, number, memory_order_relaxed);
    return base + (uint64_t)index * STRIDE;
}

/* Another thread may have a new object in this place already. */
void object_forget(uint64_t value, uint64_t number)
{
    struct slot *slot = slot_of(value);

    if (slot)
        atomic_compare_exchange_strong(&slot->number, &number, OBJECT_GONE);
}

void *object_kept(uint64_t value, uint64_t *number)
{
    struct slot *slot = slot_of(value);
    void *kept = NULL;

    *number = object_to_number(value);
    if (slot && atomic_load_explicit(&slot->kept, memory_order_acquire) &&
        slot->number_kept == *number)
        kept = slot->kept;
    return kept;
}

/* What was kept before stays: a thread may still read it. */
static void *keep_in(uint64_t value, uint64_t number, void *kept, bool is_first_kept)
{
    struct slot *slot = slot_of(value);

    if (!slot) {
        free(kept);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    if (is_first_kept && slot->kept && slot->number_kept == number) {
        free(kept);
        kept = slot->kept;
    } else {
        slot->number_kept = number;
        atomic_store_explicit(&slot->kept, kept, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return kept;
}

void *object_keep(uint64_t value, uint64_t number, void *kept)
{
    return keep_in(value, number, kept, true);
}

void *object_keep_last(uint64_t value, uint64_t number, void *kept)
{
    return keep_in(value, number, kept, false);
}
