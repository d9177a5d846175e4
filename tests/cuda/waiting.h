/* SPDX-License-Identifier: MIT */
/*
 * What streams and graphs wait for, as programs declare it: batches of operations on memory,
 * external semaphores, events of other processes, functions of the host in graphs.
 */
#ifndef TESTS_CUDA_WAITING_H
#define TESTS_CUDA_WAITING_H

#include "kit.h"

#include <unistd.h>

CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);

/* CUstreamBatchMemOpParams. */
struct memory_operation {
    unsigned int operation;
    CUdeviceptr at;
    uint64_t value;
    unsigned int flags;
    uint64_t others[2];
};

enum { WAIT_32 = 1, WRITE_32 = 2, WAIT_64 = 4, WRITE_64 = 5 };

/* CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC. */
struct semaphore_file {
    unsigned int type;
    union {
        int fd;
        void *others[2];
    } handle;
    unsigned int others[18];
};
#define BINARY   1
#define TIMELINE 9

CUresult cuImportExternalSemaphore(CUexternalSemaphore *made, const struct semaphore_file *of);

static inline CUexternalSemaphore import_semaphore(int fd, unsigned int type)
{
    struct semaphore_file of = {.type = type, .handle.fd = dup(fd)};
    CUexternalSemaphore made = NULL;

    ok(cuImportExternalSemaphore(&made, &of));
    return made;
}

/* Value first, as both kinds of parameters have it. */
typedef struct {
    uint64_t value;
    char others[136];
} semaphore_value;

static inline void signal_semaphore(CUexternalSemaphore semaphore, uint64_t value, CUstream stream)
{
    semaphore_value to = {.value = value};

    ok(cuSignalExternalSemaphoresAsync(&semaphore, (void *)&to, 1, stream));
}

static inline void wait_for_semaphore(CUexternalSemaphore semaphore, uint64_t value,
                                      CUstream stream)
{
    semaphore_value to = {.value = value};

    ok(cuWaitExternalSemaphoresAsync(&semaphore, (void *)&to, 1, stream));
}

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *of, size_t count,
                            const void *parameters);
CUresult cuGraphAddBatchMemOpNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *of,
                                  size_t count, const void *parameters);
CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *of,
                                   size_t count, CUevent event);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *of,
                                 size_t count, const void *parameters);

static inline void add_kernel(CUgraph graph, uint64_t ns)
{
    CUfunction parameters[16] = {kit_kernel(ns)};
    CUgraphNode node;

    ok(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, parameters));
}

static inline void add_host(CUgraph graph, void (*function)(void *), void *data)
{
    const void *parameters[] = {(void *)function, data};
    CUgraphNode node;

    ok(cuGraphAddHostNode(&node, graph, NULL, 0, parameters));
}

typedef struct {
    char reserved[64];
} ipc_event;
CUresult cuIpcGetEventHandle(ipc_event *handle, CUevent event);
CUresult cuIpcOpenEventHandle(CUevent *event, ipc_event handle);

#define FOR_OTHERS 6

#endif
