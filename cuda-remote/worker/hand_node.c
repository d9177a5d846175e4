// SPDX-License-Identifier: MIT
/* Nodes of graphs that allocate memory, wait for or write values in it, or are done on a condition.
 */
#include "node.h"
#include "structure.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

enum { NODE_CHILD = 4, NODE_CONDITIONAL = 13 };
enum { OWNERSHIP_MOVE = 1 };

/* Of CUmemPoolProps: an address, which is of other systems. */
#define POOL_SECURITY_AT 16

CUresult node_take_operations(struct request *request, struct node *node)
{
    const struct hand_operations *sent = request_part(request, &node->at, sizeof(*sent));
    uint8_t *list;

    if (!sent || sent->count > HAND_OPERATIONS_MOST) {
        request->is_broken = true;
        return CUDA_ERROR_INVALID_VALUE;
    }
    list = (uint8_t *)request_part(request, &node->at, sent->count * HAND_OPERATION_BYTES);
    if (!list)
        return CUDA_ERROR_OUT_OF_MEMORY;
    node->does.operations = (struct operations_node){
        .context = node->context, .count = sent->count, .list = list, .flags = sent->flags};
    return structures_find(request, STRUCTURE_CUstreamBatchMemOpParams, HAND_OPERATION_BYTES, list,
                           sent->count * HAND_OPERATION_BYTES);
}

CUresult node_get_operations(struct request *request, void *node)
{
    CUresult (*get)(void *, struct operations_node *) = driver_function(request->number);
    struct hand_operations *to = request_answer(request, sizeof(*to));
    struct operations_node of = {0};
    CUresult result = get && to ? get(node, &of) : CUDA_ERROR_NOT_SUPPORTED;
    uint8_t *list;

    if (result != CUDA_SUCCESS)
        return result;
    if (of.count > HAND_OPERATIONS_MOST || (of.count && !of.list))
        return CUDA_ERROR_NOT_SUPPORTED;
    *to = (struct hand_operations){.context = object_number(OBJECT_CUcontext, of.context, 0),
                                   .count = of.count,
                                   .flags = of.flags};
    list = request_answer(request, of.count * HAND_OPERATION_BYTES);
    if (!list)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (of.count)
        memcpy(list, of.list, of.count * HAND_OPERATION_BYTES);
    return CUDA_SUCCESS;
}

CUresult node_take_allocation(struct request *request, struct node *node)
{
    const struct hand_allocation *sent = request_part(request, &node->at, sizeof(*sent));
    struct allocation_node *to = &node->does.allocation;

    if (!sent || sent->count > HAND_ACCESSES_MOST) {
        request->is_broken = true;
        return CUDA_ERROR_INVALID_VALUE;
    }
    *to = (struct allocation_node){.count = sent->count, .bytes = sent->bytes};
    memcpy(to->pool, sent->pool, sizeof(to->pool));
    memset(to->pool + POOL_SECURITY_AT, 0, sizeof(void *));
    to->accesses = request_part(request, &node->at, sent->count * HAND_ACCESS_BYTES);
    if (!to->accesses)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!sent->count)
        to->accesses = NULL;
    return CUDA_SUCCESS;
}

CUresult node_give_allocation(struct request *request, const struct node *node)
{
    const struct allocation_node *of = &node->does.allocation;
    CUdeviceptr *to = request_answer(request, sizeof(*to));

    if (!to || !place_remember(request->extra, of->address, of->bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *to = of->address;
    return CUDA_SUCCESS;
}

CUresult node_get_allocation(struct request *request, void *node)
{
    CUresult (*get)(void *, struct allocation_node *) = driver_function(request->number);
    struct hand_allocation *to = request_answer(request, sizeof(*to));
    struct allocation_node of = {.count = 0};
    CUresult result = get && to ? get(node, &of) : CUDA_ERROR_NOT_SUPPORTED;
    uint8_t *accesses;

    if (result != CUDA_SUCCESS)
        return result;
    if (of.count > HAND_ACCESSES_MOST || (of.count && !of.accesses))
        return CUDA_ERROR_NOT_SUPPORTED;
    *to = (struct hand_allocation){
        .bytes = of.bytes, .address = of.address, .count = (uint32_t)of.count};
    memcpy(to->pool, of.pool, sizeof(to->pool));
    memset(to->pool + POOL_SECURITY_AT, 0, sizeof(void *));
    accesses = request_answer(request, of.count * HAND_ACCESS_BYTES);
    if (!accesses)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (of.count)
        memcpy(accesses, of.accesses, of.count * HAND_ACCESS_BYTES);
    return CUDA_SUCCESS;
}

/*
 * Handles of conditions. Kernels have them, too, so a program has the driver's own numbers, and
 * only those that the driver has given out go back to it, until their graph ends.
 */
struct condition {
    uint64_t handle, graph;
};

static pthread_mutex_t conditions_lock = PTHREAD_MUTEX_INITIALIZER;
static struct condition *conditions;
static size_t conditions_count, conditions_room;

static bool is_there(const struct condition *condition)
{
    void *graph;

    return object_find(OBJECT_CUgraph, condition->graph, &graph);
}

/* So that they are not more and more. False: there is no memory. */
static bool make_room(void)
{
    struct condition *more;
    size_t left = 0;

    for (size_t i = 0; i < conditions_count; i++)
        if (is_there(&conditions[i]))
            conditions[left++] = conditions[i];
    conditions_count = left;
    if (left < conditions_room / 2)
        return true;
    more = realloc(conditions, (2 * left + 256) * sizeof(*more));
    if (!more)
        return left < conditions_room;
    conditions = more;
    conditions_room = 2 * left + 256;
    return true;
}

void condition_remember(uint64_t handle, uint64_t graph)
{
    pthread_mutex_lock(&conditions_lock);
    if (conditions_count < conditions_room || make_room())
        conditions[conditions_count++] = (struct condition){handle, graph};
    pthread_mutex_unlock(&conditions_lock);
}

static bool is_known_condition(uint64_t handle)
{
    bool is_known = false;

    pthread_mutex_lock(&conditions_lock);
    for (size_t i = 0; i < conditions_count && !is_known; i++)
        is_known = conditions[i].handle == handle && is_there(&conditions[i]);
    pthread_mutex_unlock(&conditions_lock);
    return is_known;
}

static CUresult take_child(const struct hand_general *sent, struct node *node)
{
    struct general_node *to = &node->does.general;

    if (!object_find(OBJECT_CUgraph, sent->graph, &to->child.graph) || !to->child.graph)
        return CUDA_ERROR_INVALID_VALUE;
    to->type = NODE_CHILD;
    to->child.ownership = OWNERSHIP_MOVE;
    node->moved = sent->graph;
    return CUDA_SUCCESS;
}

CUresult node_take_general(struct request *request, struct node *node)
{
    const struct hand_general *sent = request_part(request, &node->at, sizeof(*sent));

    if (!sent)
        return CUDA_ERROR_INVALID_VALUE;
    if (sent->node_type == NODE_CHILD)
        return take_child(sent, node);
    if (sent->node_type != NODE_CONDITIONAL || !sent->size ||
        sent->size > HAND_CONDITIONAL_GRAPHS || !is_known_condition(sent->handle))
        return CUDA_ERROR_INVALID_VALUE;
    node->does.general = (struct general_node){.type = NODE_CONDITIONAL,
                                               .conditional = {.handle = sent->handle,
                                                               .kind = sent->kind,
                                                               .size = sent->size,
                                                               .context = node->context}};
    return CUDA_SUCCESS;
}

/* They end with the node. */
CUresult node_give_graphs(struct request *request, const struct node *node)
{
    const struct general_node *of = &node->does.general;
    uint64_t *to;

    if (node->moved)
        return object_adopt(node->moved, request->extra) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    to = request_answer(request, of->conditional.size * sizeof(*to));
    if (!to)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; of->conditional.graphs && i < of->conditional.size; i++)
        to[i] = object_number(OBJECT_CUgraph, of->conditional.graphs[i], request->extra);
    return CUDA_SUCCESS;
}
