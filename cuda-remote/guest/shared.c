// SPDX-License-Identifier: MIT
/* Which parts of the arena are in use. Its first part is for the program's objects, and nobody can
 * read there. */
#include "remote.h"

#include "channels.h"
#include "lost_memory.h"
#include "places.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STEP      (64ull << 10)
#define LEND_FROM (1ull << 20)

/* @is_pinned: the program has it, and the driver has had it registered. */
struct area {
    struct area *next;
    uint64_t address, bytes;
    bool is_pinned;
};

/* Sorted by address. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct area *areas;
static uint64_t arena, arena_end;

void shared_begin(uint64_t address, uint64_t bytes)
{
    arena = address + (1ull << 30);
    arena_end = address + bytes;
    lost_memory_replace_arena(arena, arena_end);
}

/* The first gap. */
static struct area **find_gap(uint64_t bytes, uint64_t *address)
{
    struct area **at = &areas;

    *address = arena;
    while (*at && (*at)->address - *address < bytes) {
        *address = (*at)->address + (*at)->bytes;
        at = &(*at)->next;
    }
    return *at || arena_end - *address >= bytes ? at : NULL;
}

static struct area *claim_area(uint64_t bytes)
{
    struct area *area = malloc(sizeof(*area)), **at;

    if (!area)
        return NULL;
    pthread_rwlock_wrlock(&lock);
    at = find_gap(bytes, &area->address);
    if (at) {
        area->bytes = bytes;
        area->is_pinned = false;
        area->next = *at;
        *at = area;
    }
    pthread_rwlock_unlock(&lock);
    if (at)
        return area;
    free(area);
    return NULL;
}

/* Nobody can have the place before nothing is mapped there. */
static void give_back(uint64_t address)
{
    struct area **at = &areas, *area;

    pthread_rwlock_wrlock(&lock);
    while (*at && (*at)->address != address)
        at = &(*at)->next;
    area = *at;
    if (area) {
        mmap((void *)(uintptr_t)address, area->bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        *at = area->next;
    }
    pthread_rwlock_unlock(&lock);
    free(area);
}

static void end_share(void *at, enum control_kind kind)
{
    const struct control_message message = {CONTROL_MAGIC, kind, (uintptr_t)at, 0};

    /* If the worker could not be told, or the driver has not given it back, they have it still. */
    if (connect_ask(&message) == CONTROL_OK || connect_is_dead())
        give_back((uintptr_t)at);
}

/* @end: what the worker is told if it has the memory and the program can't have it. */
static void *begin_share(uint64_t bytes, enum control_kind begin, enum control_kind end)
{
    struct area *area = claim_area((bytes + STEP - 1) / STEP * STEP);
    struct control_message message = {CONTROL_MAGIC, begin, 0, bytes};
    void *at;

    if (!area)
        return NULL;
    message.address = area->address;
    at = (void *)(uintptr_t)area->address;
    if (!connect_share(&message, end)) {
        give_back(message.address);
        return NULL;
    }
    madvise(at, bytes, MADV_DONTFORK);
    return at;
}

/*
 * In a VM there is little of the host's memory, which is in the window, and much of its own. But
 * this takes longer to share. What one has no room for may be of the other.
 */
void *shared_new(size_t bytes)
{
    bool is_large = bytes >= LEND_FROM;
    uint64_t rounded = (bytes + STEP - 1) / STEP * STEP;
    void *at =
        begin_share(rounded, is_large ? CONTROL_SHARE_GUEST : CONTROL_SHARE_NEW, CONTROL_SHARE_END);

    return at ? at
              : begin_share(rounded, is_large ? CONTROL_SHARE_NEW : CONTROL_SHARE_GUEST,
                            CONTROL_SHARE_END);
}

void shared_end(void *at)
{
    end_share(at, CONTROL_SHARE_END);
}

void shared_mark_pinned(const void *at)
{
    pthread_rwlock_wrlock(&lock);
    for (struct area *area = areas; area; area = area->next)
        area->is_pinned |= area->address == (uintptr_t)at;
    pthread_rwlock_unlock(&lock);
}

/* The first that is pinned behind @address; 0: there is none. */
static uint64_t pinned_behind(uint64_t address)
{
    const struct area *area;
    uint64_t found;

    pthread_rwlock_rdlock(&lock);
    area = areas;
    while (area && !(area->is_pinned && area->address > address))
        area = area->next;
    found = area ? area->address : 0;
    pthread_rwlock_unlock(&lock);
    return found;
}

void shared_end_unregistered(void)
{
    struct control_message message = {CONTROL_MAGIC, CONTROL_SHARE_END, 0, 0};

    while ((message.address = pinned_behind(message.address)))
        if (connect_ask(&message) == CONTROL_OK)
            give_back(message.address);
}

struct channel_shared *shared_new_channel(void)
{
    return begin_share(sizeof(struct channel_shared), CONTROL_CHANNEL, CONTROL_CHANNEL_END);
}

void shared_end_channel(struct channel_shared *at)
{
    end_share(at, CONTROL_CHANNEL_END);
}

bool shared_contains(const void *at, size_t bytes)
{
    uint64_t address = (uintptr_t)at;
    bool is_in = false;

    if (address < arena || address >= arena_end)
        return false;
    pthread_rwlock_rdlock(&lock);
    for (struct area *area = areas; area && area->address <= address; area = area->next)
        if (address - area->address < area->bytes)
            is_in = bytes <= area->bytes - (address - area->address);
    pthread_rwlock_unlock(&lock);
    return is_in;
}

/*
 * The program's own memory is where it has mapped it. The driver's addresses are of the card, or of
 * the worker's mappings; they lie where the program has nothing.
 */
bool place_is_device(uint64_t address)
{
    unsigned char resident;
    long page = sysconf(_SC_PAGESIZE);

    if (place_is_known(address) || shared_contains((const void *)(uintptr_t)address, 1))
        return true;
    return mincore((void *)(uintptr_t)(address / (uint64_t)page * (uint64_t)page), 1, &resident) !=
           0;
}
