// SPDX-License-Identifier: MIT
/*
 * Nodes of graphs: kernels, copies and fills take their time; functions of the host, values,
 * semaphores and events are waited for, or made, in between.
 */
#include "graph.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/content.h"

#define OPS_MOST 256
#define OP_BYTES 48 /* CUstreamBatchMemOpParams */

/* Of what graphs allocate, which nothing is at before they run. */
static _Atomic CUdeviceptr graph_addresses = 0x700000000000;

static CUresult add_ops(CUgraphNode *made, CUgraph graph, unsigned int type,
                        const struct model_op *ops, unsigned int count)
{
    struct node node = {
        .type = (CUgraphNodeType)type, .ops = graph_keep_ops(ops, count), .count = count};
    CUresult result = graph_add_node(made, graph, node);

    if (result != CUDA_SUCCESS)
        free(node.ops);
    return result;
}

static struct effect *effect_of_node(const struct kernel_parameters *of, CUresult *result)
{
    struct shape shape = {.shared = of->shared};

    memcpy(shape.grid, of->grid, sizeof(shape.grid));
    memcpy(shape.block, of->block, sizeof(shape.block));
    return effect_of_launch(of->function, &shape, of->parameters, of->extra, result);
}

static CUresult add_kernel(CUgraphNode *node, CUgraph graph, const struct kernel_parameters *of)
{
    struct model_op op = launch_operation(of->function);
    struct node kernel = {
        .type = CU_GRAPH_NODE_TYPE_KERNEL, .function = of->function, .count = 1, .kernel = *of};
    CUresult result = CUDA_SUCCESS;

    if (content_is_on())
        kernel.effect = effect_of_node(of, &result);
    if (result != CUDA_SUCCESS)
        return result;
    if (kernel.effect)
        op.length_ns = (double)effect_length_ns(kernel.effect);
    /* How long it takes is known when it is launched. */
    if (of->function == FAKE_VARIES)
        op.length_ns = 0;
    kernel.ops = graph_keep_ops(&op, 1);
    return graph_add_node(node, graph, kernel);
}

static CUresult add_host(CUgraphNode *node, CUgraph graph, const struct host_parameters *of)
{
    const struct model_op op = waits_of_host(of->function, of->argument);

    if (!of->function)
        return CUDA_ERROR_INVALID_VALUE;
    return graph_add_node(node, graph,
                          (struct node){.type = (CUgraphNodeType)NODE_HOST,
                                        .ops = graph_keep_ops(&op, 1),
                                        .count = 1,
                                        .host = *of});
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size);

/* Where the node keeps its parameters is the caller's to read. */
static CUresult get_kernel(struct node *node, struct kernel_parameters *to)
{
    size_t offset, bytes;

    if (!node || node->type != CU_GRAPH_NODE_TYPE_KERNEL)
        return CUDA_ERROR_INVALID_VALUE;
    *to = node->kernel;
    to->extra = NULL;
    for (unsigned int i = 0; node->effect && i < PARAMETERS_MOST; i++)
        if (cuFuncGetParamInfo(node->function, i, &offset, &bytes) == CUDA_SUCCESS)
            node->pointers[i] = (void *)(effect_parameters(node->effect) + offset);
    to->parameters = node->effect ? node->pointers : NULL;
    return CUDA_SUCCESS;
}

static CUresult set_kernel(struct node *node, const struct kernel_parameters *of)
{
    CUresult result = CUDA_SUCCESS;
    struct effect *effect;

    if (!node || node->type != CU_GRAPH_NODE_TYPE_KERNEL)
        return CUDA_ERROR_INVALID_VALUE;
    effect = content_is_on() ? effect_of_node(of, &result) : NULL;
    if (result != CUDA_SUCCESS)
        return result;
    node->effect = effect;
    node->kernel = *of;
    node->function = of->function;
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, void *to)
{
    ENTER();
    return get_kernel((struct node *)node, to);
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const void *of)
{
    ENTER();
    return set_kernel((struct node *)node, of);
}

/* With a kernel of a library and its context behind it. */
struct kernel_parameters_v2 {
    struct kernel_parameters kernel;
    void *of_library, *context;
};

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, void *to)
{
    struct kernel_parameters_v2 *all = to;

    ENTER();
    all->of_library = all->context = NULL;
    return get_kernel((struct node *)node, &all->kernel);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const void *of)
{
    ENTER();
    return set_kernel((struct node *)node, of);
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, void *to)
{
    ENTER();
    if (!node || ((struct node *)node)->type != (CUgraphNodeType)NODE_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    *(struct host_parameters *)to = ((struct node *)node)->host;
    return CUDA_SUCCESS;
}

static void keep_batch(struct node *node, const struct batch_parameters *of)
{
    void *list = calloc(of->count, OP_BYTES);

    memcpy(list, of->list, of->count * OP_BYTES);
    node->batch = *of;
    node->batch.list = list;
}

static CUresult add_batch(CUgraphNode *node, CUgraph graph, const struct batch_parameters *of)
{
    struct model_op ops[OPS_MOST];
    unsigned int count = waits_of_batch(of->list, of->count, ops, OPS_MOST);
    CUresult result =
        count ? add_ops(node, graph, NODE_BATCH_MEM_OP, ops, count) : CUDA_ERROR_INVALID_VALUE;

    if (result == CUDA_SUCCESS)
        keep_batch((struct node *)*node, of);
    return result;
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, void *to)
{
    ENTER();
    if (!node || ((struct node *)node)->type != (CUgraphNodeType)NODE_BATCH_MEM_OP)
        return CUDA_ERROR_INVALID_VALUE;
    *(struct batch_parameters *)to = ((struct node *)node)->batch;
    return CUDA_SUCCESS;
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const void *of)
{
    ENTER();
    if (!node || ((struct node *)node)->type != (CUgraphNodeType)NODE_BATCH_MEM_OP)
        return CUDA_ERROR_INVALID_VALUE;
    keep_batch((struct node *)node, of);
    return CUDA_SUCCESS;
}

/* CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, _WAIT_NODE_PARAMS. */
struct semaphore_parameters {
    void *const *list;
    const void *parameters;
    unsigned int count;
};

static CUresult add_semaphores(CUgraphNode *node, CUgraph graph, bool signals,
                               const struct semaphore_parameters *of)
{
    struct model_op ops[OPS_MOST];
    unsigned int count =
        semaphores_operations(signals, of->list, of->parameters, of->count, ops, OPS_MOST);

    return count ? add_ops(node, graph, signals ? NODE_SIGNAL : NODE_WAIT, ops, count)
                 : CUDA_ERROR_INVALID_VALUE;
}

static CUresult add_event(CUgraphNode *node, CUgraph graph, bool waits, CUevent event)
{
    return graph_add_node(
        node, graph,
        (struct node){.type = (CUgraphNodeType)(waits ? NODE_WAIT_EVENT : NODE_EVENT_RECORD),
                      .event = event});
}

/* CUDA_MEMSET_NODE_PARAMS. */
struct memset_parameters {
    CUdeviceptr to;
    size_t pitch;
    unsigned int value;
    unsigned int element;
    size_t width;
    size_t height;
};

static CUresult add_memset(CUgraphNode *node, CUgraph graph, const struct memset_parameters *of)
{
    const struct model_op op = {.engine = MODEL_COMPUTE,
                                .kind = TIMING_WORK,
                                .length_ns =
                                    (double)(of->width * of->element * of->height / FAKE_FILLS)};

    return add_ops(node, graph, NODE_MEMSET, &op, 1);
}

static CUresult add_memcpy(CUgraphNode *node, CUgraph graph, const CUDA_MEMCPY3D *of)
{
    const struct model_op op = {
        .engine = of->dstMemoryType == CU_MEMORYTYPE_HOST ? MODEL_COPY_OUT : MODEL_COPY,
        .kind = TIMING_WORK,
        .length_ns = (double)(of->WidthInBytes * of->Height * of->Depth / FAKE_COPIES)};

    return add_ops(node, graph, NODE_MEMCPY, &op, 1);
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define ADD(name, type, result)                                                                    \
    CUresult name(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, \
                  type parameters)                                                                 \
    {                                                                                              \
        ENTER();                                                                                   \
        return result;                                                                             \
    }
ADD(cuGraphAddKernelNode, const void *, add_kernel(node, graph, parameters))
ADD(cuGraphAddKernelNode_v2, const void *, add_kernel(node, graph, parameters))
ADD(cuGraphAddHostNode, const void *, add_host(node, graph, parameters))
ADD(cuGraphAddBatchMemOpNode, const void *, add_batch(node, graph, parameters))
ADD(cuGraphAddExternalSemaphoresSignalNode, const void *,
    add_semaphores(node, graph, true, parameters))
ADD(cuGraphAddExternalSemaphoresWaitNode, const void *,
    add_semaphores(node, graph, false, parameters))
ADD(cuGraphAddEventRecordNode, CUevent, add_event(node, graph, false, parameters))
ADD(cuGraphAddEventWaitNode, CUevent, add_event(node, graph, true, parameters))

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const void *parameters, CUcontext context)
{
    ENTER();
    return add_memset(node, graph, parameters);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_MEMCPY3D *parameters, CUcontext context)
{
    ENTER();
    return add_memcpy(node, graph, parameters);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                             size_t count)
{
    ENTER();
    return add_ops(node, graph, 5, NULL, 0);
}

/* CUgraphNodeParams. */
struct node_parameters {
    unsigned int type;
    unsigned int reserved[3];
    union {
        char bytes[232];
        struct kernel_parameters kernel;
        struct host_parameters host;
        struct batch_parameters batch;
        struct semaphore_parameters semaphores;
        CUevent event;
        struct {
            uint64_t handle;
            unsigned int kind, size;
            CUgraph *graphs;
        } conditional;
    } of;
};

/* Of those that programs make so; all others do nothing. */
static CUresult add_node(CUgraphNode *node, CUgraph graph, struct node_parameters *parameters)
{
    CUgraph *graphs;

    switch (parameters->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return add_kernel(node, graph, &parameters->of.kernel);
    case NODE_HOST:
        return add_host(node, graph, &parameters->of.host);
    case NODE_BATCH_MEM_OP:
        return add_batch(node, graph, &parameters->of.batch);
    case NODE_SIGNAL:
    case NODE_WAIT:
        return add_semaphores(node, graph, parameters->type == NODE_SIGNAL,
                              &parameters->of.semaphores);
    case NODE_EVENT_RECORD:
    case NODE_WAIT_EVENT:
        return add_event(node, graph, parameters->type == NODE_WAIT_EVENT, parameters->of.event);
    case NODE_CONDITIONAL:
        graphs = calloc(parameters->of.conditional.size, sizeof(CUgraph));
        for (unsigned int i = 0; i < parameters->of.conditional.size; i++)
            graphs[i] = graph_new();
        parameters->of.conditional.graphs = graphs;
        return add_ops(node, graph, parameters->type, NULL, 0);
    default:
        return add_ops(node, graph, parameters->type, NULL, 0);
    }
}

ADD(cuGraphAddNode, struct node_parameters *, add_node(node, graph, parameters))

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                           const void *edges, size_t count, struct node_parameters *parameters)
{
    ENTER();
    return add_node(node, graph, parameters);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    ENTER();
    (void)dependencies;
    (void)count;
    parameters->dptr =
        atomic_fetch_add(&graph_addresses, (parameters->bytesize + 0xfffff) & ~0xfffffull);
    return graph_add_node(node, graph,
                          (struct node){.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                                        .bytes = parameters->bytesize,
                                        .address = parameters->dptr});
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                  size_t count, CUgraph child)
{
    ENTER();
    (void)dependencies;
    (void)count;
    return graph_add_node(node, graph,
                          (struct node){.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = child});
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    ENTER();
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    *parameters = (CUDA_MEM_ALLOC_NODE_PARAMS){.bytesize = ((struct node *)node)->bytes,
                                               .dptr = ((struct node *)node)->address};
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
