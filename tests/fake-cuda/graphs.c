// SPDX-License-Identifier: MIT
/*
 * Graphs. One does what its nodes do, one after the other as they were added: kernels, copies and
 * fills take their time; functions of the host, values, semaphores and events are waited for, or
 * made, in between. Memory that it allocates and frees when it runs the driver keeps until it is
 * trimmed.
 */
#include "fake.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "card.h"
#include "ptx/content.h"
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

#define OPS_MOST 256
#define OP_BYTES 48 /* CUstreamBatchMemOpParams */

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

/* What a launch does: an operation, or something with an event. @varying: kernels in it that may
 * take another time each time. */
struct step {
    struct model_op op;
    unsigned int varying;
    CUevent event;
    bool waits;
    struct effect *effect;
};

/* @types: of the @nodes of the graph that it was made of. */
struct exec {
    uint64_t bytes;
    CUgraphNodeType types[NODES_MOST];
    unsigned int nodes;
    struct step *steps;
    unsigned int count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t graphs_reserved;
/* Of what graphs allocate, which nothing is at before they run. */
static _Atomic CUdeviceptr graph_addresses = 0x700000000000;

CUgraph graph_new(void)
{
    return calloc(1, sizeof(struct graph));
}

static struct model_op *keep(const struct model_op *ops, unsigned int count)
{
    struct model_op *kept = calloc(count ? count : 1, sizeof(*kept));

    memcpy(kept, ops, count * sizeof(*ops));
    return kept;
}

static CUgraphNodeType type_of(const struct model_op *op)
{
    switch (op->kind) {
    case TIMING_HOST:
        return (CUgraphNodeType)NODE_HOST;
    case TIMING_WAIT_VALUE:
    case TIMING_WRITE_VALUE:
        return (CUgraphNodeType)NODE_BATCH_MEM_OP;
    case TIMING_TAKE:
        return (CUgraphNodeType)NODE_WAIT;
    default:
        return CU_GRAPH_NODE_TYPE_KERNEL;
    }
}

/* Captured: an event only takes its time there. */
void graph_add(CUgraph graph, const struct model_op *op)
{
    struct graph *to = (struct graph *)graph;
    struct model_op kept = *op;

    if (kept.kind == TIMING_EVENT)
        kept.kind = TIMING_WORK;
    if (to->count < NODES_MOST)
        to->nodes[to->count++] = (struct node){
            .type = type_of(op), .ops = keep(&kept, 1), .count = 1, .effect = effect_take()};
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    ENTER();
    (void)flags;
    *graph = graph_new();
    return CUDA_SUCCESS;
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags)
{
    FILE *file = fopen(path, "we");

    ENTER();
    if (!graph || !file)
        return CUDA_ERROR_INVALID_VALUE;
    fprintf(file, "digraph of %u {}\n", flags);
    return fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    struct graph *of = (struct graph *)graph;

    ENTER();
    for (unsigned int i = 0; of && i < of->count; i++)
        free(of->nodes[i].ops);
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

static CUresult add_ops(CUgraphNode *made, CUgraph graph, unsigned int type,
                        const struct model_op *ops, unsigned int count)
{
    struct node node = {.type = (CUgraphNodeType)type, .ops = keep(ops, count), .count = count};
    CUresult result = add(made, graph, node);

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
    kernel.ops = keep(&op, 1);
    return add(node, graph, kernel);
}

static CUresult add_host(CUgraphNode *node, CUgraph graph, const struct host_parameters *of)
{
    const struct model_op op = waits_of_host(of->function, of->argument);

    if (!of->function)
        return CUDA_ERROR_INVALID_VALUE;
    return add(
        node, graph,
        (struct node){
            .type = (CUgraphNodeType)NODE_HOST, .ops = keep(&op, 1), .count = 1, .host = *of});
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
    return add(node, graph,
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
    return add(node, graph,
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

/* NULL: it is empty. */
CUgraphNode graph_last(CUgraph graph)
{
    struct graph *of = (struct graph *)graph;

    return of->count ? (CUgraphNode)&of->nodes[of->count - 1] : NULL;
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

static uint64_t needs(const struct graph *graph)
{
    uint64_t bytes = 0;

    for (unsigned int i = 0; i < graph->count; i++) {
        const struct node *node = &graph->nodes[i];

        bytes += node->child ? needs((struct graph *)node->child) : fake_round(node->bytes);
    }
    return bytes;
}

static struct step *new_step(struct exec *exec)
{
    exec->steps = realloc(exec->steps, (exec->count + 1) * sizeof(*exec->steps));
    exec->steps[exec->count] = (struct step){0};
    return &exec->steps[exec->count++];
}

/* What one engine does next is the same step, if it computes nothing. */
static void add_step(struct exec *exec, const struct model_op *op, bool varying,
                     struct effect *effect)
{
    struct step *last = exec->count ? &exec->steps[exec->count - 1] : NULL;

    if (!last || last->event || last->effect || effect || last->op.kind != TIMING_WORK ||
        op->kind != TIMING_WORK || last->op.engine != op->engine) {
        last = new_step(exec);
        last->op = *op;
    } else {
        last->op.length_ns += op->length_ns;
    }
    last->varying += varying;
    last->effect = effect;
}

static void flatten(struct exec *exec, const struct graph *graph)
{
    for (unsigned int i = 0; i < graph->count; i++) {
        const struct node *node = &graph->nodes[i];

        if (node->child)
            flatten(exec, (struct graph *)node->child);
        for (unsigned int k = 0; k < node->count; k++)
            add_step(exec, &node->ops[k], node->function == FAKE_VARIES, node->effect);
        if (node->event)
            *new_step(exec) = (struct step){
                .event = node->event, .waits = node->type == (CUgraphNodeType)NODE_WAIT_EVENT};
    }
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph)
{
    struct exec *made;

    if (!exec || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    made = calloc(1, sizeof(*made));
    made->bytes = needs((struct graph *)graph);
    for (const struct graph *of = (struct graph *)graph; made->nodes < of->count; made->nodes++)
        made->types[made->nodes] = of->nodes[made->nodes].type;
    flatten(made, (struct graph *)graph);
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

/* CUgraphExecUpdateResultInfo. */
struct update {
    unsigned int result;
    CUgraphNode node, from;
};

enum { UPDATE_TOPOLOGY_CHANGED = 2, UPDATE_NODE_TYPE_CHANGED = 3 };

/* Its next launches are of the other graph's nodes, which are of the same types. */
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, void *info)
{
    struct update *told = info;
    struct exec *to = (struct exec *)exec;
    struct graph *of = (struct graph *)graph;

    ENTER();
    if (!exec || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    memset(told, 0, sizeof(*told));
    if (to->nodes != of->count)
        told->result = UPDATE_TOPOLOGY_CHANGED;
    for (unsigned int i = 0; i < of->count && !told->result; i++)
        if (to->types[i] != of->nodes[i].type) {
            told->result = UPDATE_NODE_TYPE_CHANGED;
            told->node = (CUgraphNode)&of->nodes[i];
        }
    if (told->result)
        return FAKE_GRAPH_EXEC_UPDATE_FAILURE;
    to->count = 0;
    flatten(to, of);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    ENTER();
    if (exec)
        free(((struct exec *)exec)->steps);
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

static CUresult do_step(const struct step *step, CUstream stream, bool per_thread)
{
    struct model_op op = step->op;
    CUresult result;

    if (step->event)
        return step->waits ? event_wait(stream, per_thread, step->event)
                           : event_record(step->event, stream, per_thread);
    op.length_ns += (double)(step->varying * fake_varying_ns);
    result = waits_submit(stream, per_thread, &op, 1);
    return result == CUDA_SUCCESS && step->effect ? effect_repeat(step->effect, stream, per_thread)
                                                  : result;
}

/* One without work takes none, but its place. */
static CUresult launch(CUgraphExec handle, CUstream stream, bool per_thread)
{
    const struct exec *exec = (const struct exec *)handle;
    const struct step nothing = {.op = {.engine = MODEL_COMPUTE, .kind = TIMING_WORK}};
    CUresult result = upload(handle);

    for (unsigned int i = 0; result == CUDA_SUCCESS && i < exec->count; i++)
        result = do_step(&exec->steps[i], stream, per_thread);
    if (result == CUDA_SUCCESS && !exec->count)
        result = do_step(&nothing, stream, per_thread);
    return result;
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
