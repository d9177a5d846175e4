// SPDX-License-Identifier: MIT
/*
 * Graphs that can be launched. One does what its nodes do, one after the other as they were added.
 * Memory that it allocates and frees when it runs the driver keeps until it is trimmed.
 */
#include "graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "card.h"
#include "ptx/content.h"

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
