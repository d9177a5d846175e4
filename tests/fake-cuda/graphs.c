// SPDX-License-Identifier: MIT
/* Graphs: those that are made, and those that are captured. */
#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/content.h"

CUgraph graph_new(void)
{
    return calloc(1, sizeof(struct graph));
}

struct model_op *graph_keep_ops(const struct model_op *ops, unsigned int count)
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
        to->nodes[to->count++] = (struct node){.type = type_of(op),
                                               .ops = graph_keep_ops(&kept, 1),
                                               .count = 1,
                                               .effect = effect_take()};
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

CUresult graph_add_node(CUgraphNode *made, CUgraph graph, struct node node)
{
    struct graph *to = (struct graph *)graph;

    if (!made || !to || to->count == NODES_MOST)
        return CUDA_ERROR_INVALID_VALUE;
    to->nodes[to->count] = node;
    *made = (CUgraphNode)&to->nodes[to->count++];
    return CUDA_SUCCESS;
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
