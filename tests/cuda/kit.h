/* SPDX-License-Identifier: MIT */
/*
 * An arbiter as it is, slices, and programs under the door over the fake card. Each program is a
 * process of its own, for CUDA does not live through fork().
 */
#ifndef TESTS_CUDA_KIT_H
#define TESTS_CUDA_KIT_H

#include "live.h"

#include "cuda_abi.h"
#include "wrappers.h"

#define MIB (1ull << 20)

/* The test's; in programs, too. */
extern struct live kit_live;

/* Entry points that pass, as programs declare them. */
CUresult cuInit(unsigned int flags);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetCount(int *count);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location,
                                CUmemAllocationType type);
CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type);
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuGraphCreate(CUgraph *graph, unsigned int flags);
CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters);
CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                  size_t count, CUgraph child);

/* Slices "a" with @vram bytes, and "b" without a limit, of the fake card; programs are of "a". 0:
 * none of both. */
void kit_open(uint64_t vram);
void kit_close(void);
/* The same card with slices "a" and "b", given as their files: each program says which is its own.
 */
void kit_open_two(const char *a, const char *b);
/*
 * Two devices: programs have slice "a" of the first one and "b" of the second one. Their current
 * context is the first one's.
 */
void kit_open_devices(const char *a, const char *b);
/* Of a program, first: a context on the card, in this slice; NULL: in none. */
void kit_enter(const char *slice);
/* Launches kernels of so many nanoseconds, or of fake.h's, in the slice until they are measured. */
void kit_enter_measured(const char *slice);
void kit_launch(CUfunction function, CUstream stream);
#define kit_kernel(ns) ((CUfunction)(uintptr_t)(ns))
/* How often the driver's function was called in this process. */
unsigned int kit_calls(const char *name);
/* @program in a process of its own; fails where it does. */
void kit_run(void (*program)(void));
/* Does not wait for it. The number to await it by. */
unsigned int kit_start(void (*program)(void));
void kit_await(unsigned int number);
/* The same for one that may fail: its status. */
int kit_end_of(unsigned int number);
int kit_pid(unsigned int number);
/* Ends all that were started. */
void kit_kill_all(void);

/* Of a program, first: a context on the card. */
CUcontext kit_context(void);
/* What slice "a" is charged. Waits until it is so, for what is given back is not waited for. */
void kit_charged(uint64_t bytes);
/* The same of slice "b". */
void kit_charged_b(uint64_t bytes);
/* What the card has given out. */
uint64_t kit_on_card(void);
uint64_t kit_peak(void);
/* What the driver has by that name; NULL: nothing. */
void *kit_driver(const char *name);

#define ok(call)   g_assert_cmpint(call, ==, CUDA_SUCCESS)
#define full(call) g_assert_cmpint(call, ==, CUDA_ERROR_OUT_OF_MEMORY)

#endif
