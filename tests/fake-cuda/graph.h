/* SPDX-License-Identifier: MIT */
/* A graph of the fake driver's: its nodes, in the order in which they were added. */
#ifndef FAKE_CUDA_GRAPH_H
#define FAKE_CUDA_GRAPH_H

#include "fake.h"

#include "timing.h"

#define NODES_MOST 1024

/* Of CUgraphNodeType, what cuda_abi.h lacks. */
enum {
    NODE_MEMCPY = 1,
    NODE_MEMSET = 2,
    NODE_HOST = 3,
    NODE_WAIT_EVENT = 6,
    NODE_EVENT_RECORD = 7,
    NODE_SIGNAL = 8,
    NODE_WAIT = 9,
    NODE_BATCH_MEM_OP = 12,
    NODE_CONDITIONAL = 13,
};

/* Of a kernel's parameters, these are the first. A number needs only the function. */
struct kernel_parameters {
    CUfunction function;
    uint32_t grid[3], block[3];
    uint32_t shared;
    void **parameters, **extra;
};

/* CUDA_HOST_NODE_PARAMS. */
struct host_parameters {
    void *function;
    void *argument;
};

/* CUDA_BATCH_MEM_OP_NODE_PARAMS. */
struct batch_parameters {
    CUcontext context;
    unsigned int count;
    const struct memory_operation *list;
    unsigned int flags;
};

#define PARAMETERS_MOST 64

/* @bytes: what it allocates, to be freed at its end. @function: of a kernel, which may take another
 * time each time. @event: that it records or waits for. @ops: what the card does for it.
 * @effect: what a kernel computes, which is never freed. */
struct node {
    CUgraphNodeType type;
    uint64_t bytes;
    CUdeviceptr address;
    CUfunction function;
    CUgraph child;
    CUevent event;
    struct model_op *ops;
    unsigned int count;
    struct effect *effect;
    struct kernel_parameters kernel;
    struct host_parameters host;
    struct batch_parameters batch;
    void *pointers[PARAMETERS_MOST + 1];
};

struct graph {
    struct node nodes[NODES_MOST];
    unsigned int count;
};

/* A copy, which is the node's. */
struct model_op *graph_keep_ops(const struct model_op *ops, unsigned int count);

CUresult graph_add_node(CUgraphNode *made, CUgraph graph, struct node node);

#endif
