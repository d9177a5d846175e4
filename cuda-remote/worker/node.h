/* SPDX-License-Identifier: MIT */
/* Nodes of graphs whose parameters hold more than numbers, as the driver lays these out. */
#ifndef CUDA_WORKER_NODE_H
#define CUDA_WORKER_NODE_H

#include "hand.h"
#include "worker.h"

/* The first form ends before @kernel. */
struct kernel_node {
    void *function;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    void **parameters, **extra;
    void *kernel, *context;
};

struct host_node {
    CUhostFn function;
    void *user;
};

struct operations_node {
    void *context;
    uint32_t count;
    const uint8_t *list;
    uint32_t flags;
};

struct allocation_node {
    uint8_t pool[HAND_POOL_BYTES];
    const uint8_t *accesses;
    size_t count, bytes;
    CUdeviceptr address;
};

/* CUgraphNodeParams. */
struct general_node {
    uint32_t type, reserved[3];
    union {
        uint64_t words[29];
        struct {
            uint64_t handle;
            uint32_t kind, size;
            void **graphs; /* written by the driver, whose they are */
            void *context;
        } conditional;
        struct {
            void *graph;
            uint32_t ownership;
        } child;
    };
    uint64_t rest;
};

_Static_assert(sizeof(struct allocation_node) == 120, "CUDA_MEM_ALLOC_NODE_PARAMS");
_Static_assert(sizeof(struct general_node) == 256, "CUgraphNodeParams");

/* A request that makes or changes a node, taken apart. */
struct node {
    const struct hand_node *head;
    void *exec, *graph, *node, *context;
    void **after;
    size_t at; /* where what it does begins */
    union {
        struct kernel_node kernel;
        struct host_node host;
        struct operations_node operations;
        struct allocation_node allocation;
        struct general_node general;
        CUDA_MEMCPY3D copy;
    } does;
    void *extra[5];
    size_t parameter_bytes;
    struct callback *callback;
    uint64_t moved; /* the graph that becomes the node's */
};

/* Of memory, and of what is done when (hand_node.c). */
CUresult node_take_operations(struct request *request, struct node *node);
CUresult node_get_operations(struct request *request, void *node);
CUresult node_take_allocation(struct request *request, struct node *node);
CUresult node_give_allocation(struct request *request, const struct node *node);
CUresult node_get_allocation(struct request *request, void *node);
CUresult node_take_general(struct request *request, struct node *node);
CUresult node_give_graphs(struct request *request, const struct node *node);

#endif
