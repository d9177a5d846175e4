/* SPDX-License-Identifier: MIT */
/*
 * A CUDA driver over the card in card.h: it exports every name of the table, and counts the calls
 * of each. Those of memory, contexts, pools, graphs and handles do what the driver's do to the
 * ledger of the card; the others say CUDA_SUCCESS and remember what they were given. Memory has
 * addresses, and content only if it is asked for (ptx/content.h). Launches, copies, fills, graphs
 * and events take time (timing.h).
 *
 *   FAKE_CUDA_CAPABILITY   ten times the compute capability; 100
 *   FAKE_CUDA_FAIL_CREATE  N: the N-th call of cuMemCreate() finds no memory
 *   FAKE_CUDA_UNEXPORTED   1: cuGetProcAddress("cuMemAlloc") gives a function that isn't exported
 *   FAKE_CUDA_LATER        1: forms of CUDA 12.5 are what 13.0 means, and 12.5 does not yet
 *   FAKE_CUDA_INSTANTIATE  flags: cuGetProcAddress("cuGraphInstantiate") gives ..WithFlags
 *   FAKE_CUDA_HOST_OFFSET  bytes between where the process has locked memory, and where the GPU has
 * it FAKE_CUDA_HOST_MEMORY  the GPU reaches all of the process's memory: 1 unless it is asked not
 * to, 2
 */
#ifndef FAKE_CUDA_FAKE_H
#define FAKE_CUDA_FAKE_H

#include "cuda_abi.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FAKE_ARGUMENTS 16
/* A stream of the second device's context; all others are the current context's. */
#define FAKE_OF_SECOND ((CUstream)(uintptr_t)0xd1)
/* A kernel that spins beside others until one that releases it is launched, in any process. */
#define FAKE_SPIN    ((CUfunction)(uintptr_t)0x7ffffff1)
#define FAKE_RELEASE ((CUfunction)(uintptr_t)0x7ffffff2)
/* Kernels that fail: whatever the process asks for then fails, too. */
#define FAKE_FAULTS  ((CUfunction)(uintptr_t)0x7ffffff4)
#define FAKE_ASSERTS ((CUfunction)(uintptr_t)0x7ffffff5)
/* A kernel that takes fake_varying_ns. */
#define FAKE_VARIES ((CUfunction)(uintptr_t)0x7ffffff3)
extern uint64_t fake_varying_ns;
/* Bytes for each nanosecond. */
#define FAKE_COPIES 12
#define FAKE_FILLS  1000

/* Where cuMemAddressReserve() gives out addresses: above all that is given out with memory. */
#define FAKE_RESERVED 0x4400000000000ull

/* Results that the door does not know. */
#define FAKE_COMPILER_NOT_FOUND        ((CUresult)221)
#define FAKE_ILLEGAL_ADDRESS           ((CUresult)700)
#define FAKE_LAUNCH_FAILED             ((CUresult)719)
#define FAKE_CAPTURE_UNSUPPORTED       ((CUresult)900)
#define FAKE_GRAPH_EXEC_UPDATE_FAILURE ((CUresult)910)
#define FAKE_CAPTURE_INVALIDATED       ((CUresult)901)
#define FAKE_CAPTURE_IMPLICIT          ((CUresult)906)

#define FAKE_CAPTURE_STATUS_INVALIDATED ((CUstreamCaptureStatus)2)

struct fake_call {
    const char *name;
    const char *base;
    int since;
    void *function;
    _Atomic unsigned int calls;
};

/* Each name of the table, then one without a name. */
extern struct fake_call fake_calls[];

/* For tests, which find them by dlsym() in the driver. */
unsigned int fake_count(const char *name);
/* What the last call of a function that only remembers was given. */
extern _Thread_local long fake_arguments[FAKE_ARGUMENTS];
/* Called before memory is free on the card, before parts of arrays are mapped, and before an event
 * is recorded or asked for. */
extern void (*fake_before_free)(void);
extern void (*fake_before_map)(CUstream stream);
extern void (*fake_before_record)(CUstream stream);
extern void (*fake_before_query)(void);
/* Called before a kernel is launched, which fails with what it returns. */
extern CUresult (*fake_before_launch)(CUfunction function, CUstream stream);
/* The same around what is allocated from a pool, before one is trimmed, and after one was
 * destroyed. */
extern void (*fake_around_pooled)(CUstream stream, bool is_done);
extern void (*fake_before_trim)(void);
extern void (*fake_after_pool_destroy)(void);
/* In each call that makes, maps or releases memory with a handle; and "opened", while what another
 * process made has been opened and the caller does not know it. */
extern void (*fake_in_mapping)(const char *name);
/* So many more calls of cuMemCreate() succeed, and the next one finds no memory. */
extern _Atomic unsigned int fake_creates_left;

/* 0: a GPU holds the managed memory that it uses. */
extern int fake_concurrent_managed;
/* This advice is refused. */
extern unsigned int fake_advice_refused;

void fake_note(const char *name);
#define ENTER() fake_note(__func__)

/* Memory of this process, by address. */
CUresult fake_alloc(uint64_t bytes, CUdeviceptr *dptr);
CUresult fake_free(CUdeviceptr dptr);
/* A pool's, too. */
CUresult fake_free_any(CUdeviceptr dptr);
/* An address for what isn't the card's own; NULL-safe as those are. */
CUresult fake_address(uint64_t bytes, int device, CUdeviceptr *dptr);
/* It does not end with its context. */
void fake_keep(CUdeviceptr dptr);
/* Which the memory at @dptr is of. */
int fake_device_at(CUdeviceptr dptr);
CUresult fake_forget(CUdeviceptr dptr);
uint64_t fake_size_of(CUdeviceptr dptr, CUdeviceptr *base);
/* The same of memory that is mapped by its handle. */
uint64_t fake_mapped_at(CUdeviceptr at, CUdeviceptr *base, int *device);
uint64_t fake_round(uint64_t bytes);
/* Marks that @dptr is a pool's. */
void fake_give(uint64_t bytes);
/* Ends with the context: frees what was allocated in it. */
void fake_free_context(CUcontext context);
CUcontext fake_current(void);
/* What is mapped into an array, or into all of a context, is so no longer. */
void fake_unmap_array(const void *array);
void fake_unmap_arrays_of(CUcontext context);
/* By bytes of its own, which end with it. */
CUresult fake_grow_context(uint64_t bytes);
void fake_shrink_context(CUcontext context, uint64_t bytes);
bool fake_exists(CUdevice device);
/* Of the current context; 0: or there is none. */
int fake_device(void);
/* The device of a stream. */
int fake_device_of(CUstream stream);
CUresult fake_launch(CUfunction f, CUstream stream, bool per_thread);
/* What calls.c does besides for those that move memory. */
long fake_move(const char *name, const long arguments[FAKE_ARGUMENTS]);
/* What a stream frees when it comes to that is freed now, if it has. */
void fake_free_reached(void);
/* Nothing but the first device's memory is counted. */
bool fake_take(int device, uint64_t bytes);

/* For tests/cuda/spike (spike.c). NULL: no such table. */
const void *spike_table(const void *id);
/* False: its compiler does not run. */
bool spike_compiles(void);

#endif
