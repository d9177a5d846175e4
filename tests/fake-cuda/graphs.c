// SPDX-License-Identifier: MIT
/*
 * Graphs. One takes as long as its kernels and copies together. Memory that it allocates and frees
 * when it runs the driver keeps until it is trimmed.
 */
#include "fake.h"

#include <pthread.h>
#include <stdlib.h>

#include "card.h"
#include "timing.h"

#define NODES_MOST 1024

/* @bytes: what it allocates, to be freed at its end. @ns: of work; @function: of a kernel, which
 * may take another time each time. */
struct node {
    CUgraphNodeType type;
    uint64_t bytes;
    uint64_t ns;
    CUfunction function;
    CUgraph child;
};

struct graph {
    struct node nodes[NODES_MOST];
    unsigned int count;
};

struct exec {
    uint64_t bytes;
    uint64_t ns;
    unsigned int varying;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t graphs_reserved;

CUgraph graph_new(void)
{
    return calloc(1, sizeof(struct graph));
}

void graph_add(CUgraph graph, const struct model_op *op)
{
    struct graph *to = (struct graph *)graph;

    if (to->count < NODES_MOST)
        to->nodes[to->count++] =
            (struct node){.type = CU_GRAPH_NODE_TYPE_KERNEL, .ns = (uint64_t)op->length_ns};
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    ENTER();
    (void)flags;
    *graph = graph_new();
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

/* Of a kernel's parameters, the function is the first. */
static CUresult add_kernel(CUgraphNode *node, CUgraph graph, CUfunction const *parameters)
{
    const struct node kernel = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
                                .ns = (uintptr_t)*parameters < 1000000000u ? (uintptr_t)*parameters
                                                                           : 0,
                                .function = *parameters};

    return add(node, graph, kernel);
}

#define ADD_KERNEL(name)                                                                           \
    CUresult name(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, \
                  const void *parameters)                                                          \
    {                                                                                              \
        ENTER();                                                                                   \
        (void)dependencies;                                                                        \
        (void)count;                                                                               \
        return add_kernel(node, graph, parameters);                                                \
    }
ADD_KERNEL(cuGraphAddKernelNode)
ADD_KERNEL(cuGraphAddKernelNode_v2)

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

/* How long its nodes take, one after the other. */
static void sum_up(struct exec *exec, const struct graph *graph)
{
    for (unsigned int i = 0; i < graph->count; i++) {
        const struct node *node = &graph->nodes[i];

        if (node->child)
            sum_up(exec, (struct graph *)node->child);
        exec->varying += node->function == FAKE_VARIES;
        exec->ns += node->ns;
    }
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph)
{
    struct exec *made;

    if (!exec || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    made = calloc(1, sizeof(*made));
    made->bytes = needs((struct graph *)graph);
    sum_up(made, (struct graph *)graph);
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

/* Its next launches are of the other graph's nodes. */
#define UPDATE(name)                                                                               \
    CUresult name(CUgraphExec exec, CUgraph graph, void *info)                                     \
    {                                                                                              \
        ENTER();                                                                                   \
        (void)info;                                                                                \
        if (!exec || !graph)                                                                       \
            return CUDA_ERROR_INVALID_VALUE;                                                       \
        ((struct exec *)exec)->ns = ((struct exec *)exec)->varying = 0;                            \
        sum_up((struct exec *)exec, (struct graph *)graph);                                        \
        return CUDA_SUCCESS;                                                                       \
    }
UPDATE(cuGraphExecUpdate_v2)

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

static CUresult upload(CUgraphExec exec)
{
    return exec ? reserve(((struct exec *)exec)->bytes) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult launch(CUgraphExec handle, CUstream stream, bool per_thread)
{
    const struct exec *exec = (const struct exec *)handle;
    CUresult result = upload(handle);
    struct model_op op = {.engine = MODEL_COMPUTE, .kind = TIMING_WORK};

    if (result != CUDA_SUCCESS)
        return result;
    op.length_ns = (double)(exec->ns + exec->varying * fake_varying_ns);
    return timing_submit(stream, per_thread, &op);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    ENTER();
    return launch(exec, stream, false);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
    ENTER();
    return launch(exec, stream, true);
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    ENTER();
    (void)stream;
    return upload(exec);
}

CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
    ENTER();
    (void)stream;
    return upload(exec);
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
