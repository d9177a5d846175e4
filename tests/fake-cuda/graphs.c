// SPDX-License-Identifier: MIT
/* Graphs, with memory that they allocate and free when they run: the driver keeps it until it is
 * trimmed. */
#include "fake.h"

#include <pthread.h>
#include <stdlib.h>

#include "card.h"

/* A graph: what its nodes allocate, each to be freed at its end; and a child, if any. */
#define NODES_MOST 16

struct node {
    CUgraphNodeType type;
    uint64_t bytes;
    CUgraph child;
};

struct graph {
    struct node nodes[NODES_MOST];
    unsigned int count;
};

struct exec {
    uint64_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t graphs_reserved;

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    ENTER();
    (void)flags;
    *graph = calloc(1, sizeof(struct graph));
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    ENTER();
    free(graph);
    return CUDA_SUCCESS;
}

static CUresult add(CUgraphNode *made, CUgraph graph, struct node node)
{
    struct graph *to = (struct graph *)graph;

    if (!made || !to || to->count == NODES_MOST)
        return CUDA_ERROR_INVALID_VALUE;
    to->nodes[to->count] = node;
    *made = (CUgraphNode)&to->nodes[to->count++];
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    ENTER();
    (void)dependencies;
    (void)count;
    return add(node, graph,
               (struct node){.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .bytes = parameters->bytesize});
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                  size_t count, CUgraph child)
{
    ENTER();
    (void)dependencies;
    (void)count;
    return add(node, graph, (struct node){.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = child});
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    struct graph *of = (struct graph *)graph;

    ENTER();
    if (!of)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; nodes && i < of->count && i < *count; i++)
        nodes[i] = (CUgraphNode)&of->nodes[i];
    *count = of->count;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    ENTER();
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    *type = ((struct node *)node)->type;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    ENTER();
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    *parameters = (CUDA_MEM_ALLOC_NODE_PARAMS){.bytesize = ((struct node *)node)->bytes};
    return CUDA_SUCCESS;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph)
{
    ENTER();
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = ((struct node *)node)->child;
    return CUDA_SUCCESS;
}

static uint64_t needs(const struct graph *graph)
{
    uint64_t bytes = 0;

    for (unsigned int i = 0; i < graph->count; i++) {
        const struct node *node = &graph->nodes[i];

        bytes += node->child ? needs((struct graph *)node->child) : fake_round(node->bytes);
    }
    return bytes;
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph)
{
    struct exec *made;

    if (!exec || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    made = calloc(1, sizeof(*made));
    made->bytes = needs((struct graph *)graph);
    *exec = (CUgraphExec)made;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log,
                            size_t size)
{
    ENTER();
    (void)node;
    (void)log;
    (void)size;
    return instantiate(exec, graph);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log,
                               size_t size)
{
    ENTER();
    (void)node;
    (void)log;
    (void)size;
    return instantiate(exec, graph);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    ENTER();
    (void)flags;
    return instantiate(exec, graph);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, void *parameters)
{
    ENTER();
    (void)parameters;
    return instantiate(exec, graph);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph, void *parameters)
{
    ENTER();
    (void)parameters;
    return instantiate(exec, graph);
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    ENTER();
    free(exec);
    return CUDA_SUCCESS;
}

static CUresult reserve(uint64_t bytes)
{
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&lock);
    if (bytes > graphs_reserved && !card_take(bytes - graphs_reserved))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    else if (bytes > graphs_reserved)
        graphs_reserved = bytes;
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult run(CUgraphExec exec)
{
    return exec ? reserve(((struct exec *)exec)->bytes) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    ENTER();
    (void)stream;
    return run(exec);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
    ENTER();
    (void)stream;
    return run(exec);
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    ENTER();
    (void)stream;
    return run(exec);
}

CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
    ENTER();
    (void)stream;
    return run(exec);
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    ENTER();
    (void)device;
    pthread_mutex_lock(&lock);
    fake_give(graphs_reserved);
    graphs_reserved = 0;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    ENTER();
    (void)device;
    *(cuuint64_t *)value =
        attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT ? graphs_reserved : 0;
    return CUDA_SUCCESS;
}
