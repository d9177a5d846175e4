// SPDX-License-Identifier: MIT
#include "charge.h"

#include <stdlib.h>
#include <sys/stat.h>

/* @by: bytes; less is modulo 2^64. */
static void change_charged(struct gpu *gpu, uint64_t by)
{
    atomic_fetch_add(&gpu->charged, by);
    atomic_fetch_add(&gpu->changes, 1);
}

bool charge_try(struct gpu *gpu, uint64_t bytes, bool may_spill, struct charge *charge)
{
    enum governor_memory kind = governor_member_reserve(gpu->member, bytes, may_spill);

    if (kind == GOVERNOR_MEMORY_NONE)
        return false;
    *charge = (struct charge){.gpu = gpu, .bytes = bytes, .kind = kind};
    if (kind == GOVERNOR_MEMORY_DEVICE)
        change_charged(gpu, bytes);
    return true;
}

static void release_bytes(struct gpu *gpu, uint64_t bytes, enum governor_memory kind)
{
    governor_member_release(gpu->member, bytes, kind);
    if (kind == GOVERNOR_MEMORY_DEVICE)
        change_charged(gpu, -bytes);
}

bool charge_resize(struct charge *charge, uint64_t bytes)
{
    if (!charge->gpu || charge->bytes == bytes)
        return true;
    if (bytes < charge->bytes) {
        release_bytes(charge->gpu, charge->bytes - bytes, charge->kind);
    } else {
        if (!charge->gpu->member ||
            governor_member_reserve(charge->gpu->member, bytes - charge->bytes, false) !=
                GOVERNOR_MEMORY_DEVICE)
            return false;
        change_charged(charge->gpu, bytes - charge->bytes);
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
            change_charged(charge->gpu, -charge->bytes);
    } else if (charge->gpu && charge->bytes) {
        release_bytes(charge->gpu, charge->bytes, charge->kind);
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
