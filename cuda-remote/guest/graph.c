// SPDX-License-Identifier: MIT
/* Graphs: what is captured, and nodes whose parameters hold more than numbers. */
#include "graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Of a thread's last question; until its next one. */
struct captured {
    size_t count;
    CUgraphNode nodes[HAND_DEPENDENCIES_MOST];
    uint64_t edges[HAND_DEPENDENCIES_MOST];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void make_key(void)
{
    pthread_key_create(&key, free);
}

/* This thread's; NULL: no memory. */
static struct captured *own_captured(void)
{
    struct captured *captured;

    pthread_once(&once, make_key);
    captured = pthread_getspecific(key);
    if (captured)
        return captured;
    captured = calloc(1, sizeof(*captured));
    if (captured && pthread_setspecific(key, captured) == 0)
        return captured;
    free(captured);
    return NULL;
}

static CUresult ask_capture(unsigned int number, CUstream stream, struct hand_capture *capture,
                            struct captured *captured)
{
    const struct hand_object head = {.object = object_to_number((uintptr_t)stream)};
    struct exchange ask = {.number = number, .head = &head, .head_bytes = sizeof(head)};
    struct hand_dependency dependencies[HAND_DEPENDENCIES_MOST];
    CUresult result;

    exchange_out(&ask, capture, sizeof(*capture));
    exchange_out(&ask, dependencies, sizeof(dependencies));
    ask.is_short = true;
    result = exchange_run(&ask);
    if (result == CUDA_SUCCESS && ask.extra > HAND_DEPENDENCIES_MOST)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (result != CUDA_SUCCESS)
        return result;
    captured->count = (size_t)ask.extra;
    for (size_t i = 0; i < captured->count; i++) {
        captured->nodes[i] = (CUgraphNode)(uintptr_t)object_of_number(dependencies[i].node);
        captured->edges[i] = dependencies[i].edge;
    }
    return CUDA_SUCCESS;
}

/* All but the status may be left out. */
static CUresult get_capture(unsigned int number, CUstream stream, unsigned int *status,
                            uint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                            const uint64_t **edges, size_t *count)
{
    struct captured *captured = own_captured();
    struct hand_capture capture = {0};
    CUresult result;

    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    result = captured ? ask_capture(number, stream, &capture, captured) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS)
        return result;
    *status = capture.status;
    if (id)
        *id = capture.id;
    if (graph)
        *graph = (CUgraph)(uintptr_t)object_of_number(capture.graph);
    if (nodes)
        *nodes = captured->nodes;
    if (edges)
        *edges = captured->edges;
    if (count)
        *count = captured->count;
    return CUDA_SUCCESS;
}

#define CAPTURE_INFO(name)                                                                         \
    EXPORT CUresult name(CUstream stream, unsigned int *status, uint64_t *id, CUgraph *graph,      \
                         const CUgraphNode **nodes, size_t *count);                                \
    CUresult name(CUstream stream, unsigned int *status, uint64_t *id, CUgraph *graph,             \
                  const CUgraphNode **nodes, size_t *count)                                        \
    {                                                                                              \
        return get_capture(CALL_##name, stream, status, id, graph, nodes, NULL, count);            \
    }
CAPTURE_INFO(cuStreamGetCaptureInfo_v2)
CAPTURE_INFO(cuStreamGetCaptureInfo_v2_ptsz)

#define CAPTURE_INFO_EDGES(name)                                                                   \
    EXPORT CUresult name(CUstream stream, unsigned int *status, uint64_t *id, CUgraph *graph,      \
                         const CUgraphNode **nodes, const uint64_t **edges, size_t *count);        \
    CUresult name(CUstream stream, unsigned int *status, uint64_t *id, CUgraph *graph,             \
                  const CUgraphNode **nodes, const uint64_t **edges, size_t *count)                \
    {                                                                                              \
        return get_capture(CALL_##name, stream, status, id, graph, nodes, edges, count);           \
    }
CAPTURE_INFO_EDGES(cuStreamGetCaptureInfo_v3)
CAPTURE_INFO_EDGES(cuStreamGetCaptureInfo_v3_ptsz)

CUresult node_send(unsigned int number, const struct node *node, CUgraphNode *made)
{
    struct exchange ask = {.number = number, .head = &node->head, .head_bytes = sizeof(node->head)};
    size_t count = (size_t)node->head.dependencies;
    uint64_t *after = calloc(count + 1, sizeof(*after));
    CUresult result;

    if (!after)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++)
        after[i] = object_to_number((uintptr_t)node->after[i]);
    exchange_in(&ask, after, count * sizeof(*after));
    exchange_in(&ask, node->does[0].at, node->does[0].bytes);
    if (node->does[1].bytes)
        exchange_in(&ask, node->does[1].at, node->does[1].bytes);
    if (node->answer.bytes)
        exchange_out(&ask, node->answer.at, node->answer.bytes);
    ask.keeps_failed = true;
    result = exchange_run(&ask);
    free(after);
    if (result == CUDA_SUCCESS && made)
        *made = (CUgraphNode)(uintptr_t)object_of_number(ask.extra);
    return result;
}

static CUresult send_kernel(unsigned int number, struct node *node, const KernelNode *of,
                            bool has_kernel, CUgraphNode *made)
{
    CUfunction function = of && has_kernel && !of->function ? of->kernel : of ? of->function : NULL;
    struct launch_parameters packed;
    struct hand_launch launch = {0};
    CUresult result =
        of ? launch_pack(function, of->parameters, of->extra, &packed) : CUDA_ERROR_INVALID_VALUE;

    if (result != CUDA_SUCCESS)
        return result;
    launch.function = object_to_number((uintptr_t)function);
    launch.bytes = (uint32_t)packed.bytes;
    launch.shared_bytes = of->shared_bytes;
    memcpy(launch.grid, of->grid, sizeof(launch.grid));
    memcpy(launch.block, of->block, sizeof(launch.block));
    if (has_kernel && !of->function)
        node->head.context = object_to_number((uintptr_t)of->context);
    node->does[0] = (struct part){&launch, sizeof(launch)};
    node->does[1] = (struct part){(void *)packed.at, packed.bytes};
    return node_send(number, node, made);
}

static CUresult send_copy(unsigned int number, struct node *node, const CUDA_MEMCPY3D *of,
                          CUgraphNode *made)
{
    struct hand_copy copy;
    CUresult result = connect_state();

    if (result == CUDA_SUCCESS)
        result = of ? copy_for_graph(of, &copy) : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    node->does[0] = (struct part){&copy, sizeof(copy)};
    return node_send(number, node, made);
}

static CUresult send_function(unsigned int number, struct node *node, const HostNode *of,
                              CUgraphNode *made)
{
    struct hand_callback callback = {0};
    CUresult result = connect_state();

    if (result == CUDA_SUCCESS && (!of || !of->function))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && !callback_thread_runs())
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS)
        return result;
    callback.function = (uintptr_t)of->function;
    callback.user = (uintptr_t)of->user;
    node->does[0] = (struct part){&callback, sizeof(callback)};
    return node_send(number, node, made);
}

#define ADD(name, type, send)                                                                      \
    EXPORT CUresult name(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t count, \
                         const type *of);                                                          \
    CUresult name(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t count,        \
                  const type *of)                                                                  \
    {                                                                                              \
        unsigned int number = CALL_##name;                                                         \
        struct node does = NEW_NODE;                                                               \
                                                                                                   \
        return made && (after || !count) ? send : CUDA_ERROR_INVALID_VALUE;                        \
    }
ADD(cuGraphAddKernelNode, KernelNode, send_kernel(number, &does, of, false, made))
ADD(cuGraphAddKernelNode_v2, KernelNode, send_kernel(number, &does, of, true, made))
ADD(cuGraphAddHostNode, HostNode, send_function(number, &does, of, made))

EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after,
                                     size_t count, const CUDA_MEMCPY3D *of, CUcontext context);
CUresult cuGraphAddMemcpyNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after,
                              size_t count, const CUDA_MEMCPY3D *of, CUcontext context)
{
    struct node does = NEW_NODE;

    does.head.context = object_to_number((uintptr_t)context);
    return made && (after || !count) ? send_copy(CALL_cuGraphAddMemcpyNode, &does, of, made)
                                     : CUDA_ERROR_INVALID_VALUE;
}

#define SET(name, type, send)                                                                      \
    EXPORT CUresult name(CUgraphNode node, const type *of);                                        \
    CUresult name(CUgraphNode node, const type *of)                                                \
    {                                                                                              \
        unsigned int number = CALL_##name;                                                         \
        struct node does = OLD_NODE;                                                               \
                                                                                                   \
        return send;                                                                               \
    }
SET(cuGraphKernelNodeSetParams, KernelNode, send_kernel(number, &does, of, false, NULL))
SET(cuGraphKernelNodeSetParams_v2, KernelNode, send_kernel(number, &does, of, true, NULL))
SET(cuGraphHostNodeSetParams, HostNode, send_function(number, &does, of, NULL))
SET(cuGraphMemcpyNodeSetParams, CUDA_MEMCPY3D, send_copy(number, &does, of, NULL))

#define SET_EXEC(name, type, send)                                                                 \
    EXPORT CUresult name(CUgraphExec exec, CUgraphNode node, const type *of);                      \
    CUresult name(CUgraphExec exec, CUgraphNode node, const type *of)                              \
    {                                                                                              \
        unsigned int number = CALL_##name;                                                         \
        struct node does = EXEC_NODE;                                                              \
                                                                                                   \
        return send;                                                                               \
    }
SET_EXEC(cuGraphExecKernelNodeSetParams, KernelNode, send_kernel(number, &does, of, false, NULL))
SET_EXEC(cuGraphExecKernelNodeSetParams_v2, KernelNode, send_kernel(number, &does, of, true, NULL))
SET_EXEC(cuGraphExecHostNodeSetParams, HostNode, send_function(number, &does, of, NULL))

EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                               const CUDA_MEMCPY3D *of, CUcontext context);
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *of,
                                        CUcontext context)
{
    struct node does = EXEC_NODE;

    does.head.context = object_to_number((uintptr_t)context);
    return send_copy(CALL_cuGraphExecMemcpyNodeSetParams, &does, of, NULL);
}

/* Where a node's parameters lie for the program, until it asks for them again. */
struct node_parameters {
    size_t capacity;
    void *pointers[]; /* and behind them what they point to */
};

static struct node_parameters *keep_parameters(CUgraphNode node, const struct layout *layout,
                                               const uint8_t *packed)
{
    size_t pointers = layout->count * sizeof(void *), capacity = pointers + layout->bytes;
    uint64_t number;
    struct node_parameters *kept = object_kept((uintptr_t)node, &number), *made;
    uint8_t *bytes;

    if (!kept || kept->capacity < capacity) {
        made = calloc(1, sizeof(*made) + capacity);
        if (!made)
            return NULL;
        made->capacity = capacity;
        kept = object_keep_last((uintptr_t)node, number, made);
    }
    if (!kept)
        return NULL;
    bytes = (uint8_t *)kept->pointers + pointers;
    memcpy(bytes, packed, layout->bytes);
    for (uint32_t i = 0; i < layout->count; i++)
        kept->pointers[i] = bytes + layout->parameters[i].offset;
    return kept;
}

static CUresult get_kernel(unsigned int number, CUgraphNode node, KernelNode *to, bool has_kernel)
{
    const struct hand_object head = {.object = object_to_number((uintptr_t)node)};
    struct exchange ask = {.number = number, .head = &head, .head_bytes = sizeof(head)};
    struct hand_launch launch = {0};
    uint8_t packed[HAND_PARAMETER_BYTES] = {0};
    struct node_parameters *kept = NULL;
    const struct layout *layout;
    uint64_t number_of;
    CUfunction function;
    CUresult result = to ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    exchange_out(&ask, &launch, sizeof(launch));
    exchange_out(&ask, packed, sizeof(packed));
    ask.is_short = true;
    if (result == CUDA_SUCCESS)
        result = exchange_run(&ask);
    if (result != CUDA_SUCCESS)
        return result;
    function = (CUfunction)(uintptr_t)object_of_number(launch.function);
    layout = launch_layout(function, &number_of);
    if (layout && layout->bytes <= sizeof(packed))
        kept = keep_parameters(node, layout, packed);
    if (!kept)
        return CUDA_ERROR_OUT_OF_MEMORY;
    to->function = has_kernel && object_type(launch.function) == OBJECT_CUkernel ? NULL : function;
    memcpy(to->grid, launch.grid, sizeof(to->grid));
    memcpy(to->block, launch.block, sizeof(to->block));
    to->shared_bytes = launch.shared_bytes;
    to->parameters = kept->pointers;
    to->extra = NULL;
    if (has_kernel) {
        to->kernel = to->function ? NULL : function;
        to->context = NULL;
    }
    return CUDA_SUCCESS;
}

#define GET_KERNEL(name, has_kernel)                                                               \
    EXPORT CUresult name(CUgraphNode node, KernelNode *to);                                        \
    CUresult name(CUgraphNode node, KernelNode *to)                                                \
    {                                                                                              \
        return get_kernel(CALL_##name, node, to, has_kernel);                                      \
    }
GET_KERNEL(cuGraphKernelNodeGetParams, false)
GET_KERNEL(cuGraphKernelNodeGetParams_v2, true)

EXPORT CUresult cuGraphHostNodeGetParams(CUgraphNode node, HostNode *to);
CUresult cuGraphHostNodeGetParams(CUgraphNode node, HostNode *to)
{
    const struct hand_object head = {.object = object_to_number((uintptr_t)node)};
    struct exchange ask = {
        .number = CALL_cuGraphHostNodeGetParams, .head = &head, .head_bytes = sizeof(head)};
    struct hand_called called = {0};
    CUresult result = to ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    exchange_out(&ask, &called, sizeof(called));
    if (result == CUDA_SUCCESS)
        result = exchange_run(&ask);
    if (result == CUDA_SUCCESS)
        *to = (HostNode){(CUhostFn)(uintptr_t)called.function, (void *)(uintptr_t)called.user};
    return result;
}
