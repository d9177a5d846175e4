/* SPDX-License-Identifier: MIT */
/*
 * Memory of cuMemAlloc() that can move: a range of addresses, and physical memory by chunks, which
 * come and go while the addresses stay. Only where memory of the slice moves; otherwise, and for
 * small allocations, the driver's own is as it was.
 */
#ifndef GOVERNOR_CUDA_CHUNKS_H
#define GOVERNOR_CUDA_CHUNKS_H

#include "gpu.h"

/* What is not larger is the driver's. */
#define CHUNKS_LEAST (1u << 20)

struct piece;

/**
 * struct chunk
 * @handle: its memory, unless it is @displaced; @piece: host memory for it, NULL: none so far
 * @copied: @piece has what it has, if that is the mover's present period
 */
struct chunk {
    CUmemGenericAllocationHandle handle;
    uint64_t bytes;
    uint64_t offset;
    struct piece *piece;
    uint64_t copied;
    bool displaced;
};

/**
 * struct chunked - an allocation
 * @bytes: as the program wants it; @reserved: in whole chunks
 * @stays: others have access to it
 * @next: of those that are freed later
 */
struct chunked {
    struct chunked *next;
    CUdeviceptr at;
    uint64_t bytes;
    uint64_t reserved;
    CUcontext context;
    struct gpu *gpu;
    uint64_t id;
    bool stays;
    unsigned int count;
    struct chunk list[];
};

/* In the current context; behind the gate. */
CUresult chunks_alloc(struct gpu *gpu, CUdeviceptr *at, uint64_t bytes);
/* The allocation that contains @at, without its chunks. False: none does. */
bool chunks_look(CUdeviceptr at, struct chunked *copy);
/* It is not moved any more. On which GPU less can move than before; NULL: on none. */
struct gpu *chunks_let_stay(CUdeviceptr at);
CUresult chunks_await_work(CUcontext context);
/* What begins at @at, and nobody uses any more. Not by a thread that is behind the gate. */
CUresult chunks_free(CUdeviceptr at);
/* While a stream captures: its memory ends with the next call after that. */
CUresult chunks_free_later(CUdeviceptr at);
void chunks_end_postponed(void);

/* Whether the driver can do all that is needed. */
bool chunks_are_possible(const struct gpu *gpu);
/* Calls @func for each allocation on @gpu. Nobody may allocate or free meanwhile. */
void chunks_each(const struct gpu *gpu, void (*func)(struct chunked *chunked, void *data),
                 void *data);
/* Takes memory for a chunk that has none, and maps it. */
CUresult chunks_make(const struct chunked *chunked, struct chunk *chunk);
/* What is mapped there can be reached from now on. */
CUresult chunks_allow(const struct chunked *chunked, CUdeviceptr at, uint64_t bytes);
/* Gives the memory of a chunk back, while its addresses stay. If that fails it is as it was. */
CUresult chunks_drop(const struct chunked *chunked, struct chunk *chunk);

/* So many bytes more are displaced; less is modulo 2^64. */
void chunks_count_displaced(struct gpu *gpu, uint64_t by);

/* After the end of a context: what was allocated in it is free. */
void chunks_context_ended(CUcontext context);

#endif
