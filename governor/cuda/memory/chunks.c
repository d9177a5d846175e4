// SPDX-License-Identifier: MIT
#include "chunks.h"

#include <stdlib.h>
#include <string.h>

#include "captures.h"
#include "charge.h"
#include "forks.h"
#include "fronts.h"
#include "mover_hold.h"
#include "vault.h"

#define CHUNK_MOST GOVERNOR_VAULT_MOST
#define UNIT       CHARGE_BLOCK

/* Over the list; not held over calls of the driver's. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* By address. */
static struct chunked **list;
static unsigned int count, room;

/* Under the lock: the first one that is not below @at. */
static unsigned int place_of(CUdeviceptr at)
{
    unsigned int low = 0, high = count;

    while (low < high) {
        unsigned int middle = (low + high) / 2;

        if (list[middle]->at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Under the lock: the one that contains @at; NULL: none. */
static struct chunked *find_chunked(CUdeviceptr at)
{
    unsigned int place = place_of(at + 1);

    return place && at - list[place - 1]->at < list[place - 1]->bytes ? list[place - 1] : NULL;
}

bool chunks_look(CUdeviceptr at, struct chunked *copy)
{
    const struct chunked *chunked;

    pthread_mutex_lock(&lock);
    chunked = find_chunked(at);
    if (chunked)
        *copy = *chunked;
    pthread_mutex_unlock(&lock);
    return chunked != NULL;
}

struct gpu *chunks_let_stay(CUdeviceptr at)
{
    struct chunked *chunked;
    struct gpu *gpu = NULL;

    pthread_mutex_lock(&lock);
    chunked = find_chunked(at);
    if (chunked && !chunked->stays) {
        chunked->stays = true;
        gpu = chunked->gpu;
    }
    pthread_mutex_unlock(&lock);
    return gpu;
}

static bool add_to_list(struct chunked *chunked)
{
    static uint64_t ids;
    unsigned int place;
    bool has_room = true;

    pthread_mutex_lock(&lock);
    if (count == room) {
        unsigned int more = room ? 2 * room : 64;
        struct chunked **grown = realloc(list, more * sizeof(*grown));

        has_room = grown != NULL;
        list = grown ? grown : list;
        room = grown ? more : room;
    }
    if (has_room) {
        place = place_of(chunked->at);
        memmove(&list[place + 1], &list[place], (count++ - place) * sizeof(*list));
        list[place] = chunked;
        chunked->id = ++ids;
    }
    pthread_mutex_unlock(&lock);
    return has_room;
}

/* NULL: no allocation begins there. */
static struct chunked *take_out(CUdeviceptr at)
{
    struct chunked *chunked = NULL;
    unsigned int place;

    pthread_mutex_lock(&lock);
    place = place_of(at);
    if (place < count && list[place]->at == at) {
        chunked = list[place];
        memmove(&list[place], &list[place + 1], (--count - place) * sizeof(*list));
    }
    pthread_mutex_unlock(&lock);
    return chunked;
}

void chunks_each(const struct gpu *gpu, void (*func)(struct chunked *chunked, void *data),
                 void *data)
{
    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < count; i++)
        if (list[i]->gpu == gpu)
            func(list[i], data);
    pthread_mutex_unlock(&lock);
}

static CUmemAllocationProp property_of(const struct gpu *gpu)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu->device}};
}

CUresult chunks_make(const struct chunked *chunked, struct chunk *chunk)
{
    CUmemAllocationProp property = property_of(chunked->gpu);
    CUresult result = CARD(cuMemCreate, &chunk->handle, chunk->bytes, &property, 0);

    if (result != CUDA_SUCCESS)
        return result;
    result = CARD(cuMemMap, chunked->at + chunk->offset, chunk->bytes, 0, chunk->handle, 0);
    if (result != CUDA_SUCCESS)
        CARD(cuMemRelease, chunk->handle);
    return result;
}

CUresult chunks_allow(const struct chunked *chunked, CUdeviceptr at, uint64_t bytes)
{
    const CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = chunked->gpu->device},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    return CARD(cuMemSetAccess, at, bytes, &access, 1);
}

CUresult chunks_drop(const struct chunked *chunked, struct chunk *chunk)
{
    CUdeviceptr at = chunked->at + chunk->offset;
    CUresult result = CARD(cuMemUnmap, at, chunk->bytes);

    if (result != CUDA_SUCCESS)
        return result;
    result = CARD(cuMemRelease, chunk->handle);
    if (result == CUDA_SUCCESS)
        return result;
    CARD(cuMemMap, at, chunk->bytes, 0, chunk->handle, 0);
    chunks_allow(chunked, at, chunk->bytes);
    return result;
}

/* In units that the charge has, too. */
bool chunks_are_possible(const struct gpu *gpu)
{
    CUmemAllocationProp property = property_of(gpu);
    int supported = 0;
    size_t unit = 0;

    return CARD(cuDeviceGetAttribute, &supported,
                CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                gpu->device) == CUDA_SUCCESS &&
           supported &&
           CARD(cuMemGetAllocationGranularity, &unit, &property,
                CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS &&
           unit && UNIT % unit == 0;
}

/* Its addresses, without memory. NULL: @result. */
static struct chunked *reserve_chunked(struct gpu *gpu, uint64_t bytes, CUresult *result)
{
    uint64_t reserved = charge_round(bytes, UNIT);
    unsigned int chunks = (unsigned int)((reserved + CHUNK_MOST - 1) / CHUNK_MOST);
    struct chunked *chunked = calloc(1, sizeof(*chunked) + chunks * sizeof(struct chunk));

    *result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!chunked)
        return NULL;
    *chunked = (struct chunked){.bytes = bytes, .reserved = reserved, .gpu = gpu, .count = chunks};
    for (unsigned int i = 0; i < chunks; i++) {
        uint64_t offset = (uint64_t)i * CHUNK_MOST, rest = reserved - offset;

        chunked->list[i] =
            (struct chunk){.offset = offset, .bytes = rest < CHUNK_MOST ? rest : CHUNK_MOST};
    }
    *result = CARD(cuCtxGetCurrent, &chunked->context);
    if (*result == CUDA_SUCCESS && !chunked->context)
        *result = CUDA_ERROR_INVALID_CONTEXT;
    if (*result == CUDA_SUCCESS)
        *result = CARD(cuMemAddressReserve, &chunked->at, reserved, UNIT, 0, 0);
    if (*result == CUDA_SUCCESS)
        return chunked;
    free(chunked);
    return NULL;
}

/* Its addresses end, and what its first @chunks have. */
static void end_chunked(struct chunked *chunked, unsigned int chunks)
{
    for (unsigned int i = 0; i < chunks; i++) {
        if (!chunked->list[i].displaced)
            chunks_drop(chunked, &chunked->list[i]);
        if (chunked->list[i].piece)
            vault_put(chunked->gpu, chunked->list[i].piece);
    }
    CARD(cuMemAddressFree, chunked->at, chunked->reserved);
    free(chunked);
}

CUresult chunks_alloc(struct gpu *gpu, CUdeviceptr *at, uint64_t bytes)
{
    CUresult result;
    struct chunked *chunked = reserve_chunked(gpu, bytes, &result);
    unsigned int made = 0;

    if (!chunked)
        return result;
    while (made < chunked->count && result == CUDA_SUCCESS) {
        result = chunks_make(chunked, &chunked->list[made]);
        made += result == CUDA_SUCCESS;
    }
    if (result == CUDA_SUCCESS)
        result = chunks_allow(chunked, chunked->at, chunked->reserved);
    if (result == CUDA_SUCCESS && !add_to_list(chunked))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        *at = chunked->at;
    else
        end_chunked(chunked, made);
    return result;
}

void chunks_count_displaced(struct gpu *gpu, uint64_t by)
{
    atomic_fetch_add(&gpu->displaced, by);
    atomic_fetch_add(&gpu->changes, 1);
}

/* What of it is displaced is not on the card any more: the charge that is given back next tells. */
static void tell_displaced(const struct chunked *chunked)
{
    uint64_t displaced = 0;

    for (unsigned int i = 0; i < chunked->count; i++)
        displaced += chunked->list[i].displaced ? chunked->list[i].bytes : 0;
    if (!displaced)
        return;
    chunks_count_displaced(chunked->gpu, -displaced);
    governor_member_freed_displaced(chunked->gpu->member, displaced);
}

static void give_up(struct chunked *chunked)
{
    struct gpu *gpu = chunked->gpu;

    tell_displaced(chunked);
    end_chunked(chunked, chunked->count);
    mover_settle(gpu);
}

CUresult chunks_free(CUdeviceptr at)
{
    struct chunked *chunked;

    mover_hold();
    chunked = take_out(at);
    if (chunked)
        give_up(chunked);
    mover_release();
    return chunked ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult chunks_await_work(CUcontext context)
{
    CUresult result = CARD(cuCtxPushCurrent_v2, context);
    CUcontext popped;

    if (result != CUDA_SUCCESS)
        return result;
    result = CARD(cuCtxSynchronize);
    CARD(cuCtxPopCurrent_v2, &popped);
    return result;
}

/*
 * What was freed while a stream captured: then its context's work cannot be waited for. It ends
 * with the next call after that.
 */
static struct chunked *_Atomic postponed;

CUresult chunks_free_later(CUdeviceptr at)
{
    struct chunked *chunked;

    mover_hold();
    chunked = take_out(at);
    if (chunked) {
        tell_displaced(chunked);
        chunked->next = postponed;
        postponed = chunked;
    }
    mover_release();
    return chunked ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void chunks_end_postponed(void)
{
    struct chunked *chunked, *next;

    if (!postponed || captures_any())
        return;
    mover_hold();
    chunked = atomic_exchange(&postponed, NULL);
    for (; chunked; chunked = next) {
        struct gpu *gpu = chunked->gpu;

        next = chunked->next;
        chunks_await_work(chunked->context);
        end_chunked(chunked, chunked->count);
        mover_settle(gpu);
    }
    mover_release();
}

/* What was postponed of it, too. Under mover_hold(). */
static void end_postponed_of(CUcontext context)
{
    struct chunked *chunked = atomic_exchange(&postponed, NULL), *next;

    for (; chunked; chunked = next) {
        next = chunked->next;
        if (chunked->context == context) {
            end_chunked(chunked, chunked->count);
            continue;
        }
        chunked->next = postponed;
        postponed = chunked;
    }
}

static struct chunked *take_out_of(CUcontext context)
{
    struct chunked *chunked = NULL;

    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < count && !chunked; i++) {
        if (list[i]->context != context)
            continue;
        chunked = list[i];
        memmove(&list[i], &list[i + 1], (--count - i) * sizeof(*list));
    }
    pthread_mutex_unlock(&lock);
    return chunked;
}

void chunks_context_ended(CUcontext context)
{
    struct chunked *chunked;

    end_postponed_of(context);
    while ((chunked = take_out_of(context)))
        give_up(chunked);
}

void chunks_forget_parent(void)
{
    pthread_mutex_init(&lock, NULL);
    count = 0;
    postponed = NULL;
}
