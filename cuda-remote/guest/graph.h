/* SPDX-License-Identifier: MIT */
/* Nodes of graphs (graph.c, graph_nodes.c). */
#ifndef CUDA_REMOTE_GUEST_GRAPH_H
#define CUDA_REMOTE_GUEST_GRAPH_H

#include "remote.h"

/* As the driver lays it out; the first form ends before @kernel, which counts without a function.
 */
typedef struct {
    CUfunction function;
    unsigned int grid[3], block[3];
    unsigned int shared_bytes;
    void **parameters, **extra;
    CUfunction kernel;
    CUcontext context;
} KernelNode;

typedef struct {
    CUhostFn function;
    void *user;
} HostNode;

/* What is sent of a node: to which graph it is added, or which one is changed; then what it does;
 * and what of the answer goes where. */
struct node {
    struct hand_node head;
    const CUgraphNode *after; /* as many as the head says */
    struct part does[2];
    struct part answer;
};

CUresult node_send(unsigned int number, const struct node *node, CUgraphNode *made);

/* A new node, one of a graph, and one of a graph that can be launched. */
#define NEW_NODE                                                                                   \
    {.head = {.graph = object_to_number((uintptr_t)graph), .dependencies = count}, .after = after}
#define OLD_NODE                                                                                   \
    {                                                                                              \
        .head = {.node = object_to_number((uintptr_t)node) }                                       \
    }
#define EXEC_NODE                                                                                  \
    {                                                                                              \
        .head = {                                                                                  \
            .node = object_to_number((uintptr_t)node),                                             \
            .exec = object_to_number((uintptr_t)exec)                                              \
        }                                                                                          \
    }

#endif
