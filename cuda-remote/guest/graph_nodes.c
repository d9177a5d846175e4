// SPDX-License-Identifier: MIT
/*
 * Nodes that allocate memory or work on values in it, and the calls for nodes of any kind: these
 * are the calls for the kind, so that all that is checked and remembered for it is the same.
 */
#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    CUcontext context;
    unsigned int count;
    uint8_t *list;
    unsigned int flags;
} OperationsNode;

typedef struct {
    uint64_t handle;
    unsigned int kind, size;
    CUgraph *graphs;
    CUcontext context;
} ConditionalNode;

/* What the program has of a node until it asks again. */
static void *keep_for_node(CUgraphNode node, void *kept)
{
    uint64_t number;

    object_kept((uintptr_t)node, &number);
    return object_keep_last((uintptr_t)node, number, kept);
}

static CUresult send_operations(unsigned int number, struct node *node, const OperationsNode *of,
                                CUgraphNode *made)
{
    struct hand_operations head;

    if (!of || !of->count || of->count > HAND_OPERATIONS_MOST || !of->list)
        return CUDA_ERROR_INVALID_VALUE;
    head = (struct hand_operations){.count = of->count, .flags = of->flags};
    node->head.context = object_to_number((uintptr_t)of->context);
    node->does[0] = (struct part){&head, sizeof(head)};
    node->does[1] = (struct part){of->list, of->count * HAND_OPERATION_BYTES};
    return node_send(number, node, made);
}

EXPORT CUresult cuGraphAddBatchMemOpNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after,
                                         size_t count, const OperationsNode *of);
CUresult cuGraphAddBatchMemOpNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after,
                                  size_t count, const OperationsNode *of)
{
    struct node does = NEW_NODE;

    return made && (after || !count)
               ? send_operations(CALL_cuGraphAddBatchMemOpNode, &does, of, made)
               : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const OperationsNode *of);
CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const OperationsNode *of)
{
    struct node does = OLD_NODE;

    return send_operations(CALL_cuGraphBatchMemOpNodeSetParams, &does, of, NULL);
}

EXPORT CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                   const OperationsNode *of);
CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const OperationsNode *of)
{
    struct node does = EXEC_NODE;

    return send_operations(CALL_cuGraphExecBatchMemOpNodeSetParams, &does, of, NULL);
}

EXPORT CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, OperationsNode *to);
CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, OperationsNode *to)
{
    const struct hand_object head = {.object = object_to_number((uintptr_t)node)};
    struct exchange ask = {
        .number = CALL_cuGraphBatchMemOpNodeGetParams, .head = &head, .head_bytes = sizeof(head)};
    struct hand_operations got = {0};
    uint8_t *list = calloc(HAND_OPERATIONS_MOST, HAND_OPERATION_BYTES);
    CUresult result = to ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    if (!list)
        return CUDA_ERROR_OUT_OF_MEMORY;
    exchange_out(&ask, &got, sizeof(got));
    exchange_out(&ask, list, HAND_OPERATIONS_MOST * HAND_OPERATION_BYTES);
    ask.is_short = true;
    if (result == CUDA_SUCCESS)
        result = exchange_run(&ask);
    if (result != CUDA_SUCCESS) {
        free(list);
        return result;
    }
    *to = (OperationsNode){.context = (CUcontext)(uintptr_t)object_of_number(got.context),
                           .count = got.count,
                           .list = keep_for_node(node, list),
                           .flags = got.flags};
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after,
                                       size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *of);
CUresult cuGraphAddMemAllocNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *of)
{
    struct node does = NEW_NODE;
    struct hand_allocation head;
    CUdeviceptr address = 0;
    CUresult result;

    if (!made || !of || (!after && count) || of->accessDescCount > HAND_ACCESSES_MOST ||
        (!of->accessDescs && of->accessDescCount))
        return CUDA_ERROR_INVALID_VALUE;
    head = (struct hand_allocation){.bytes = of->bytesize, .count = (uint32_t)of->accessDescCount};
    memcpy(head.pool, &of->poolProps, sizeof(head.pool));
    does.does[0] = (struct part){&head, sizeof(head)};
    does.does[1] = (struct part){(void *)of->accessDescs, head.count * HAND_ACCESS_BYTES};
    does.answer = (struct part){&address, sizeof(address)};
    result = node_send(CALL_cuGraphAddMemAllocNode, &does, made);
    if (result == CUDA_SUCCESS)
        of->dptr = address;
    return result;
}

EXPORT CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *to);
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *to)
{
    const struct hand_object head = {.object = object_to_number((uintptr_t)node)};
    struct exchange ask = {
        .number = CALL_cuGraphMemAllocNodeGetParams, .head = &head, .head_bytes = sizeof(head)};
    struct hand_allocation got = {.count = 0};
    uint8_t *accesses = calloc(HAND_ACCESSES_MOST, HAND_ACCESS_BYTES);
    CUresult result = to ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    if (!accesses)
        return CUDA_ERROR_OUT_OF_MEMORY;
    exchange_out(&ask, &got, sizeof(got));
    exchange_out(&ask, accesses, HAND_ACCESSES_MOST * HAND_ACCESS_BYTES);
    ask.is_short = true;
    if (result == CUDA_SUCCESS)
        result = exchange_run(&ask);
    if (result != CUDA_SUCCESS) {
        free(accesses);
        return result;
    }
    memcpy(&to->poolProps, got.pool, sizeof(got.pool));
    to->accessDescs = keep_for_node(node, accesses);
    to->accessDescCount = got.count;
    to->bytesize = got.bytes;
    to->dptr = got.address;
    return CUDA_SUCCESS;
}

/* The graphs that the program fills in are the node's, and so is the list of them. */
static CUresult add_conditional(CUgraphNode *made, struct node *does, ConditionalNode *of)
{
    struct hand_general head = {.node_type = 13};
    uint64_t *numbers;
    CUresult result;

    if (!of->size || of->size > HAND_CONDITIONAL_GRAPHS)
        return CUDA_ERROR_INVALID_VALUE;
    numbers = calloc(of->size, sizeof(*numbers));
    if (!numbers)
        return CUDA_ERROR_OUT_OF_MEMORY;
    head.handle = of->handle;
    head.kind = of->kind;
    head.size = of->size;
    does->head.context = object_to_number((uintptr_t)of->context);
    does->does[0] = (struct part){&head, sizeof(head)};
    does->answer = (struct part){numbers, of->size * sizeof(*numbers)};
    result = node_send(CALL_cuGraphAddNode, does, made);
    if (result != CUDA_SUCCESS) {
        free(numbers);
        return result;
    }
    for (unsigned int i = 0; i < of->size; i++)
        numbers[i] = object_of_number(numbers[i]);
    of->graphs = keep_for_node(*made, numbers);
    return CUDA_SUCCESS;
}

static CUresult move_graph(CUgraphNode *made, struct node *does, CUgraph child)
{
    struct hand_general head = {.node_type = 4, .graph = object_to_number((uintptr_t)child)};

    does->does[0] = (struct part){&head, sizeof(head)};
    return node_send(CALL_cuGraphAddNode, does, made);
}

/* Of any kind, as the driver lays it out. */
enum node_type {
    NODE_KERNEL,
    NODE_COPY,
    NODE_FILL,
    NODE_HOST,
    NODE_CHILD,
    NODE_EMPTY,
    NODE_EVENT_WAIT,
    NODE_EVENT_RECORD,
    NODE_ALLOCATION = 10,
    NODE_FREE,
    NODE_OPERATIONS,
    NODE_CONDITIONAL,
};

typedef struct {
    CUdeviceptr to;
    size_t pitch;
    unsigned int value, element;
    size_t width, rows;
} FillNode;

typedef struct {
    unsigned int type, reserved[3];
    union {
        uint64_t words[29];
        KernelNode kernel;
        struct {
            unsigned int flags, reserved;
            CUcontext context;
            CUDA_MEMCPY3D of;
        } copy;
        struct {
            FillNode of;
            CUcontext context;
        } fill;
        HostNode host;
        struct {
            CUgraph graph;
            unsigned int is_moved;
        } child;
        CUevent event;
        CUDA_MEM_ALLOC_NODE_PARAMS allocation;
        CUdeviceptr freed;
        OperationsNode operations;
        ConditionalNode conditional;
    };
    uint64_t rest;
} AnyNode;

_Static_assert(sizeof(AnyNode) == 256, "CUgraphNodeParams");

#define ADD_ARGUMENTS CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t count

CUresult cuGraphAddKernelNode_v2(ADD_ARGUMENTS, const KernelNode *of);
CUresult cuGraphAddMemcpyNode(ADD_ARGUMENTS, const CUDA_MEMCPY3D *of, CUcontext context);
CUresult cuGraphAddMemsetNode(ADD_ARGUMENTS, const FillNode *of, CUcontext context);
CUresult cuGraphAddHostNode(ADD_ARGUMENTS, const HostNode *of);
CUresult cuGraphAddChildGraphNode(ADD_ARGUMENTS, CUgraph child);
CUresult cuGraphAddEmptyNode(ADD_ARGUMENTS);
CUresult cuGraphAddEventWaitNode(ADD_ARGUMENTS, CUevent event);
CUresult cuGraphAddEventRecordNode(ADD_ARGUMENTS, CUevent event);
CUresult cuGraphAddMemFreeNode(ADD_ARGUMENTS, CUdeviceptr at);
CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   const uint64_t *edges, size_t count);
CUresult cuGraphDestroyNode(CUgraphNode node);

EXPORT CUresult cuGraphAddNode(ADD_ARGUMENTS, AnyNode *of);
CUresult cuGraphAddNode(ADD_ARGUMENTS, AnyNode *of)
{
    struct node does = NEW_NODE;

    if (!made || !of || (!after && count))
        return CUDA_ERROR_INVALID_VALUE;
    switch (of->type) {
    case NODE_KERNEL:
        return cuGraphAddKernelNode_v2(made, graph, after, count, &of->kernel);
    case NODE_COPY:
        return cuGraphAddMemcpyNode(made, graph, after, count, &of->copy.of, of->copy.context);
    case NODE_FILL:
        return cuGraphAddMemsetNode(made, graph, after, count, &of->fill.of, of->fill.context);
    case NODE_HOST:
        return cuGraphAddHostNode(made, graph, after, count, &of->host);
    case NODE_CHILD:
        return of->child.is_moved
                   ? move_graph(made, &does, of->child.graph)
                   : cuGraphAddChildGraphNode(made, graph, after, count, of->child.graph);
    case NODE_EMPTY:
        return cuGraphAddEmptyNode(made, graph, after, count);
    case NODE_EVENT_WAIT:
        return cuGraphAddEventWaitNode(made, graph, after, count, of->event);
    case NODE_EVENT_RECORD:
        return cuGraphAddEventRecordNode(made, graph, after, count, of->event);
    case NODE_ALLOCATION:
        return cuGraphAddMemAllocNode(made, graph, after, count, &of->allocation);
    case NODE_FREE:
        return cuGraphAddMemFreeNode(made, graph, after, count, of->freed);
    case NODE_OPERATIONS:
        return cuGraphAddBatchMemOpNode(made, graph, after, count, &of->operations);
    case NODE_CONDITIONAL:
        return add_conditional(made, &does, &of->conditional);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

/* What an edge says comes with the edges, which are added to a node that has none yet. */
EXPORT CUresult cuGraphAddNode_v2(CUgraphNode *made, CUgraph graph, const CUgraphNode *after,
                                  const uint64_t *edges, size_t count, AnyNode *of);
CUresult cuGraphAddNode_v2(CUgraphNode *made, CUgraph graph, const CUgraphNode *after,
                           const uint64_t *edges, size_t count, AnyNode *of)
{
    CUgraphNode *to;
    CUresult result;

    if (!edges || !count)
        return cuGraphAddNode(made, graph, after, count, of);
    to = after && count < SIZE_MAX / sizeof(*to) ? calloc(count, sizeof(*to)) : NULL;
    if (!to)
        return after ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    result = cuGraphAddNode(made, graph, NULL, 0, of);
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        to[i] = *made;
    if (result == CUDA_SUCCESS) {
        result = cuGraphAddDependencies_v2(graph, after, to, edges, count);
        if (result != CUDA_SUCCESS)
            cuGraphDestroyNode(*made);
    }
    free(to);
    return result;
}

CUresult cuGraphNodeGetType(CUgraphNode node, unsigned int *type);
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, KernelNode *to);
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *to);
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, FillNode *to);
CUresult cuGraphHostNodeGetParams(CUgraphNode node, HostNode *to);
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *to);
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *to);
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *to);
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *to);

static CUresult get_any(CUgraphNode node, AnyNode *to)
{
    switch (to->type) {
    case NODE_KERNEL:
        return cuGraphKernelNodeGetParams_v2(node, &to->kernel);
    case NODE_COPY:
        return cuGraphMemcpyNodeGetParams(node, &to->copy.of);
    case NODE_FILL:
        return cuGraphMemsetNodeGetParams(node, &to->fill.of);
    case NODE_HOST:
        return cuGraphHostNodeGetParams(node, &to->host);
    case NODE_CHILD:
        return cuGraphChildGraphNodeGetGraph(node, &to->child.graph);
    case NODE_EMPTY:
        return CUDA_SUCCESS;
    case NODE_EVENT_WAIT:
        return cuGraphEventWaitNodeGetEvent(node, &to->event);
    case NODE_EVENT_RECORD:
        return cuGraphEventRecordNodeGetEvent(node, &to->event);
    case NODE_ALLOCATION:
        return cuGraphMemAllocNodeGetParams(node, &to->allocation);
    case NODE_FREE:
        return cuGraphMemFreeNodeGetParams(node, &to->freed);
    case NODE_OPERATIONS:
        return cuGraphBatchMemOpNodeGetParams(node, &to->operations);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

EXPORT CUresult cuGraphNodeGetParams(CUgraphNode node, AnyNode *to);
CUresult cuGraphNodeGetParams(CUgraphNode node, AnyNode *to)
{
    AnyNode got = {.type = 0};
    CUresult result = to ? cuGraphNodeGetType(node, &got.type) : CUDA_ERROR_INVALID_VALUE;

    if (result == CUDA_SUCCESS)
        result = get_any(node, &got);
    if (result == CUDA_SUCCESS)
        *to = got;
    return result;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const KernelNode *of);
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *of);
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const FillNode *of);
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const HostNode *of);
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event);
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event);

/* Others cannot be changed, with the driver either. */
EXPORT CUresult cuGraphNodeSetParams(CUgraphNode node, AnyNode *of);
CUresult cuGraphNodeSetParams(CUgraphNode node, AnyNode *of)
{
    if (!of)
        return CUDA_ERROR_INVALID_VALUE;
    switch (of->type) {
    case NODE_KERNEL:
        return cuGraphKernelNodeSetParams_v2(node, &of->kernel);
    case NODE_COPY:
        return cuGraphMemcpyNodeSetParams(node, &of->copy.of);
    case NODE_FILL:
        return cuGraphMemsetNodeSetParams(node, &of->fill.of);
    case NODE_HOST:
        return cuGraphHostNodeSetParams(node, &of->host);
    case NODE_EVENT_WAIT:
        return cuGraphEventWaitNodeSetEvent(node, of->event);
    case NODE_EVENT_RECORD:
        return cuGraphEventRecordNodeSetEvent(node, of->event);
    case NODE_OPERATIONS:
        return cuGraphBatchMemOpNodeSetParams(node, &of->operations);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

#define EXEC_ARGUMENTS CUgraphExec exec, CUgraphNode node

CUresult cuGraphExecKernelNodeSetParams_v2(EXEC_ARGUMENTS, const KernelNode *of);
CUresult cuGraphExecMemcpyNodeSetParams(EXEC_ARGUMENTS, const CUDA_MEMCPY3D *of, CUcontext context);
CUresult cuGraphExecMemsetNodeSetParams(EXEC_ARGUMENTS, const FillNode *of, CUcontext context);
CUresult cuGraphExecHostNodeSetParams(EXEC_ARGUMENTS, const HostNode *of);
CUresult cuGraphExecChildGraphNodeSetParams(EXEC_ARGUMENTS, CUgraph child);
CUresult cuGraphExecEventWaitNodeSetEvent(EXEC_ARGUMENTS, CUevent event);
CUresult cuGraphExecEventRecordNodeSetEvent(EXEC_ARGUMENTS, CUevent event);

EXPORT CUresult cuGraphExecNodeSetParams(EXEC_ARGUMENTS, AnyNode *of);
CUresult cuGraphExecNodeSetParams(EXEC_ARGUMENTS, AnyNode *of)
{
    if (!of)
        return CUDA_ERROR_INVALID_VALUE;
    switch (of->type) {
    case NODE_KERNEL:
        return cuGraphExecKernelNodeSetParams_v2(exec, node, &of->kernel);
    case NODE_COPY:
        return cuGraphExecMemcpyNodeSetParams(exec, node, &of->copy.of, of->copy.context);
    case NODE_FILL:
        return cuGraphExecMemsetNodeSetParams(exec, node, &of->fill.of, of->fill.context);
    case NODE_HOST:
        return cuGraphExecHostNodeSetParams(exec, node, &of->host);
    case NODE_CHILD:
        return cuGraphExecChildGraphNodeSetParams(exec, node, of->child.graph);
    case NODE_EVENT_WAIT:
        return cuGraphExecEventWaitNodeSetEvent(exec, node, of->event);
    case NODE_EVENT_RECORD:
        return cuGraphExecEventRecordNodeSetEvent(exec, node, of->event);
    case NODE_OPERATIONS:
        return cuGraphExecBatchMemOpNodeSetParams(exec, node, &of->operations);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

/* The file is the program's. */
EXPORT CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags);
CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags)
{
    const struct hand_dot head = {.graph = object_to_number((uintptr_t)graph), .flags = flags};
    struct exchange ask = {
        .number = CALL_cuGraphDebugDotPrint, .head = &head, .head_bytes = sizeof(head)};
    char *text = malloc(HAND_DOT_MOST);
    CUresult result = path && *path ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    FILE *file = NULL;

    if (!text)
        return CUDA_ERROR_OUT_OF_MEMORY;
    exchange_out(&ask, text, HAND_DOT_MOST);
    ask.is_short = true;
    if (result == CUDA_SUCCESS)
        result = exchange_run(&ask);
    if (result == CUDA_SUCCESS)
        file = fopen(path, "we");
    if (result == CUDA_SUCCESS &&
        (!file || fwrite(text, 1, (size_t)ask.extra, file) != (size_t)ask.extra))
        result = CUDA_ERROR_INVALID_VALUE;
    if (file && fclose(file) != 0)
        result = CUDA_ERROR_INVALID_VALUE;
    free(text);
    return result;
}
