/* SPDX-License-Identifier: MIT */
/*
 * What a piece of memory costs its slice: reserved before the driver is asked for it, set right
 * when the driver has said how much it took, and given back after the driver has it back.
 */
#ifndef GOVERNOR_CUDA_CHARGE_H
#define GOVERNOR_CUDA_CHARGE_H

#include "gpu.h"

/**
 * struct charge - all zero: nothing is charged
 * @context: whose end gives the memory back; NULL: none's
 * @object: the memory is shared, and the charge is the object's
 * @imported: another process asked the driver for it
 */
struct charge {
    struct gpu *gpu;
    uint64_t bytes;
    CUcontext context;
    struct governor_object *object;
    bool imported;
};

/* Memory that the driver takes whole blocks for: cuMemAlloc's. */
#define CHARGE_BLOCK (2u << 20)

static inline uint64_t charge_round(uint64_t bytes, uint64_t to)
{
    return bytes > UINT64_MAX - to ? bytes : (bytes + to - 1) / to * to;
}

/* As cuMemAlloc's memory is: small ones share a block. */
static inline uint64_t charge_of_alloc(uint64_t bytes)
{
    return bytes > CHARGE_BLOCK / 2 ? charge_round(bytes, CHARGE_BLOCK) : bytes;
}

/* False: beyond the limit. At the limit, pools and graphs give back what they keep unused, first.
 * @gpu NULL: nothing to charge, which is true. */
bool charge_take(struct gpu *gpu, uint64_t bytes, struct charge *charge);
/* It is @bytes in truth. False: there is not so much, and nothing has changed. Asks no pool to give
 * back: they call this. */
bool charge_resize(struct charge *charge, uint64_t bytes);
/* Also where it is an object's. Doesn't wait. */
void charge_give(struct charge *charge);

/*
 * The memory behind @charge can be had by other processes as what @device and @inode name from now
 * on. Before they are told.
 */
void charge_export(struct charge *charge, uint64_t device, uint64_t inode);
/* Memory that another process may have exported so. False: beyond the limit. */
bool charge_import(struct gpu *gpu, uint64_t device, uint64_t inode, uint64_t bytes,
                   struct charge *charge);
/* Whether a descriptor's file tells one object from another: DMA buffers and memory files do, those
 * of a driver's device node do not. */
bool charge_names(int fd, uint64_t *device, uint64_t *inode);

#endif
