// SPDX-License-Identifier: MIT
#include "charge.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "clock.h"
#include "graph.h"
#include "later.h"
#include "mover.h"
#include "own.h"
#include "pool.h"
#include "spill.h"

#define LOOK_EACH_NS 1000000000u

static bool reserve(struct gpu *gpu, uint64_t bytes)
{
    return governor_member_reserve(gpu->member, bytes, false) == GOVERNOR_MEMORY_DEVICE;
}

bool charge_make_room(struct gpu *gpu)
{
    bool pools = pools_trim(gpu), graphs = graph_trim(gpu);

    return graphs || pools;
}

/* What was found to be there already makes it less. */
static bool find_room(struct gpu *gpu)
{
    bool made = charge_make_room(gpu), later = later_make_room(gpu);

    return own_note(gpu) || made || later;
}

static enum governor_memory reserve_somehow(struct gpu *gpu, uint64_t bytes, bool may_spill)
{
    if (!gpu->member)
        return GOVERNOR_MEMORY_NONE;
    if (reserve(gpu, bytes) || (find_room(gpu) && reserve(gpu, bytes)))
        return GOVERNOR_MEMORY_DEVICE;
    return may_spill && spill_possible(gpu) ? governor_member_reserve(gpu->member, bytes, true)
                                            : GOVERNOR_MEMORY_NONE;
}

/*
 * The runtime can make a context through a table of the driver's, past the entry points, and code
 * can be loaded when it is first launched. NVML takes its time, so it is not asked at each
 * allocation.
 */
static void look_now_and_then(struct gpu *gpu)
{
    uint64_t seen = atomic_load_explicit(&gpu->seen_ns, memory_order_relaxed), now = clock_now();

    if ((!seen || now >= seen + LOOK_EACH_NS) &&
        atomic_compare_exchange_strong(&gpu->seen_ns, &seen, now)) {
        own_note(gpu);
        /* The slice's memory may move from now on. */
        if (gpu->member && governor_member_moves(gpu->member))
            mover_start(gpu);
    }
}

/* @by: bytes; less is modulo 2^64. */
static void change(struct gpu *gpu, uint64_t by)
{
    atomic_fetch_add(&gpu->charged, by);
    atomic_fetch_add(&gpu->changes, 1);
}

static bool take(struct gpu *gpu, uint64_t bytes, bool may_spill, struct charge *charge)
{
    enum governor_memory kind;

    *charge = (struct charge){0};
    if (!gpu)
        return true;
    look_now_and_then(gpu);
    kind = reserve_somehow(gpu, bytes, may_spill);
    if (kind == GOVERNOR_MEMORY_NONE)
        return false;
    *charge = (struct charge){.gpu = gpu, .bytes = bytes, .kind = kind};
    if (kind == GOVERNOR_MEMORY_DEVICE)
        change(gpu, bytes);
    return true;
}

bool charge_take(struct gpu *gpu, uint64_t bytes, struct charge *charge)
{
    return take(gpu, bytes, false, charge);
}

bool charge_take_or_spill(struct gpu *gpu, uint64_t bytes, struct charge *charge)
{
    return take(gpu, bytes, true, charge);
}

static void release(struct gpu *gpu, uint64_t bytes, enum governor_memory kind)
{
    governor_member_release(gpu->member, bytes, kind);
    if (kind == GOVERNOR_MEMORY_DEVICE)
        change(gpu, -bytes);
}

bool charge_resize(struct charge *charge, uint64_t bytes)
{
    if (!charge->gpu || charge->bytes == bytes)
        return true;
    if (bytes < charge->bytes) {
        release(charge->gpu, charge->bytes - bytes, charge->kind);
    } else {
        if (!charge->gpu->member || !reserve(charge->gpu, bytes - charge->bytes))
            return false;
        change(charge->gpu, bytes - charge->bytes);
    }
    charge->bytes = bytes;
    return true;
}

static _Atomic uint64_t gone;

uint64_t charge_gone(void)
{
    return atomic_load_explicit(&gone, memory_order_relaxed);
}

void charge_give(struct charge *charge)
{
    if (charge->gpu)
        atomic_fetch_add_explicit(&gone, 1, memory_order_relaxed);
    if (charge->object) {
        governor_member_forget(charge->gpu->member, charge->object);
        free(charge->object);
        if (!charge->imported)
            change(charge->gpu, -charge->bytes);
    } else if (charge->gpu && charge->bytes) {
        release(charge->gpu, charge->bytes, charge->kind);
    }
    *charge = (struct charge){0};
}

void charge_export(struct charge *charge, uint64_t device, uint64_t inode)
{
    struct governor_object *object;

    if (!charge->gpu || !charge->bytes || charge->object)
        return;
    object = calloc(1, sizeof(*object));
    if (!object)
        return;
    object->device = device;
    object->inode = inode;
    governor_member_export(charge->gpu->member, object, charge->bytes, GOVERNOR_MEMORY_DEVICE);
    charge->object = object;
}

bool charge_import(struct gpu *gpu, uint64_t device, uint64_t inode, uint64_t bytes,
                   struct charge *charge)
{
    struct governor_object *object;

    *charge = (struct charge){0};
    if (!gpu)
        return true;
    object = gpu->member ? calloc(1, sizeof(*object)) : NULL;
    if (!object)
        return false;
    object->device = device;
    object->inode = inode;
    if (!governor_member_import(gpu->member, object, bytes)) {
        free(object);
        return false;
    }
    *charge = (struct charge){.gpu = gpu, .bytes = bytes, .object = object, .imported = true};
    return true;
}

/* As in governor/vulkan/memory_object.c: a DMA buffer's inode has no type. */
bool charge_names(int fd, uint64_t *device, uint64_t *inode)
{
    struct stat file;

    if (fstat(fd, &file) < 0 || ((file.st_mode & S_IFMT) != 0 && !S_ISREG(file.st_mode)))
        return false;
    *device = file.st_dev;
    *inode = file.st_ino;
    return true;
}
