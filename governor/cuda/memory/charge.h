/* SPDX-License-Identifier: MIT */
/*
 * What memory costs its slice. It is reserved before the driver is asked, corrected to what the
 * driver took, and given back after the driver has freed it.
 */
#ifndef GOVERNOR_CUDA_CHARGE_H
#define GOVERNOR_CUDA_CHARGE_H

#include "gpu.h"

struct pool;

/**
 * struct charge - all zero: nothing is charged
 * @kind: what is charged, the slice's memory or its spill
 * @context: whose end gives the memory back; NULL: none's
 * @pool: that the memory is of, and that is charged for it
 * @object: the memory is shared, and the charge is the object's
 * @imported: another process asked the driver for it
 * @again: how often it was opened after the first time
 */
struct charge {
    struct gpu *gpu;
    uint64_t bytes;
    enum governor_memory kind;
    CUcontext context;
    struct pool *pool;
    struct governor_object *object;
    bool imported;
    unsigned int again;
};

/* The driver's unit for cuMemAlloc. */
#define CHARGE_BLOCK (2u << 20)

static inline uint64_t charge_round(uint64_t bytes, uint64_t to)
{
    return bytes > UINT64_MAX - to ? bytes : (bytes + to - 1) / to * to;
}

/* For cuMemAlloc: small allocations share a block. */
static inline uint64_t charge_of_alloc(uint64_t bytes)
{
    return bytes > CHARGE_BLOCK / 2 ? charge_round(bytes, CHARGE_BLOCK) : bytes;
}

/*
 * Of a GPU whose slice this process has joined. False: beyond the limit, as it is. @may_spill: what
 * does not fit is charged to the slice's spill, if that has so much left.
 */
bool charge_try(struct gpu *gpu, uint64_t bytes, bool may_spill, struct charge *charge);
/*
 * Corrects the charge to @bytes. False: beyond the limit, and nothing has changed. Not for what is
 * charged to the spill.
 */
bool charge_resize(struct charge *charge, uint64_t bytes);
/* Gives back a charge, or an object. Does not wait. */
void charge_give(struct charge *charge);
/* How often any was given back so far. */
uint64_t charge_gone(void);

/*
 * Other processes can import the memory behind @charge from now on; @device and @inode name it. To
 * be called before they learn of it.
 */
void charge_export(struct charge *charge, uint64_t device, uint64_t inode);
/* Charges memory that another process may have exported. False: beyond the limit. */
bool charge_import(struct gpu *gpu, uint64_t device, uint64_t inode, uint64_t bytes,
                   struct charge *charge);
/*
 * True if a descriptor's file identifies its memory, as DMA buffers and memory files do.
 * Descriptors of a driver's device node do not.
 */
bool charge_names(int fd, uint64_t *device, uint64_t *inode);

#endif
