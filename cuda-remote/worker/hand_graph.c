// SPDX-License-Identifier: MIT
/* Graphs: what is captured, and nodes whose parameters hold more than numbers. */
#include "node.h"

#include <stdlib.h>
#include <string.h>

#include "numbers.h"

enum { EXTRA_END = 0, EXTRA_BUFFER = 1, EXTRA_SIZE = 2 };

static bool is_called(const struct request *request, const char *part)
{
    return strstr(signatures[request->number].name, part) != NULL;
}

static CUresult ask_capture(struct request *request, void *stream, struct hand_capture *to,
                            void *const **nodes, const uint64_t **edges, size_t *count)
{
    void *function = driver_function(request->number), *graph = NULL;
    CUresult result;

    if (!function)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (is_called(request, "_v3"))
        result = ((CUresult(*)(void *, uint32_t *, uint64_t *, void **, void *const **,
                               const uint64_t **, size_t *))function)(stream, &to->status, &to->id,
                                                                      &graph, nodes, edges, count);
    else
        result =
            ((CUresult(*)(void *, uint32_t *, uint64_t *, void **, void *const **,
                          size_t *))function)(stream, &to->status, &to->id, &graph, nodes, count);
    if (result == CUDA_SUCCESS && to->status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        to->graph = object_number(OBJECT_CUgraph, graph, 0);
    else
        *count = 0;
    return result;
}

CUresult hand_capture(struct request *request)
{
    const struct hand_object *head = (const void *)request->head;
    struct hand_capture *to = request_answer(request, sizeof(*to));
    void *const *nodes = NULL;
    const uint64_t *edges = NULL;
    size_t count = 0;
    CUresult result;
    void *stream;

    if (request->head_bytes < sizeof(*head) || !to)
        return CUDA_ERROR_INVALID_VALUE;
    if (!object_find(OBJECT_CUstream, head->object, &stream))
        return CUDA_ERROR_INVALID_HANDLE;
    result = ask_capture(request, stream, to, &nodes, &edges, &count);
    if (result != CUDA_SUCCESS)
        return result;
    request->extra = count;
    for (size_t i = 0; i < count && i < HAND_DEPENDENCIES_MOST; i++) {
        struct hand_dependency *one = request_answer(request, sizeof(*one));

        if (!one)
            return CUDA_ERROR_INVALID_VALUE;
        one->node = object_number(OBJECT_CUgraphNode, nodes[i], to->graph);
        one->edge = edges ? edges[i] : 0;
    }
    return CUDA_SUCCESS;
}

static CUresult take_head(struct request *request, struct node *node)
{
    const uint64_t *after;

    node->head = (const void *)request->head;
    node->at = request->flags & RECORD_BULK ? 0 : sizeof(*node->head);
    if (request->head_bytes < sizeof(*node->head) ||
        node->head->dependencies > SIZE_MAX / (4 * sizeof(*after))) {
        request->is_broken = true;
        return CUDA_ERROR_INVALID_VALUE;
    }
    after = request_part(request, &node->at, node->head->dependencies * sizeof(*after));
    if (!after)
        return CUDA_ERROR_OUT_OF_MEMORY;
    node->after = (void **)(uintptr_t)after;
    for (uint64_t i = 0; i < node->head->dependencies; i++)
        if (!object_find(OBJECT_CUgraphNode, after[i], &node->after[i]) || !node->after[i])
            return CUDA_ERROR_INVALID_VALUE;
    if (!object_find(OBJECT_CUgraph, node->head->graph, &node->graph) ||
        !object_find(OBJECT_CUgraphExec, node->head->exec, &node->exec) ||
        !object_find(OBJECT_CUgraphNode, node->head->node, &node->node) ||
        (!node->graph && !node->node))
        return CUDA_ERROR_INVALID_VALUE;
    return object_find(OBJECT_CUcontext, node->head->context, &node->context)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_CONTEXT;
}

/* What the parameters have behind them is the driver's to read, if the kernel has more of them. */
static CUresult take_kernel(struct request *request, struct node *node)
{
    const struct hand_launch *launch = request_part(request, &node->at, sizeof(*launch));
    struct kernel_node *to = &node->does.kernel;
    const void *part;
    uint8_t *bytes;
    bool is_kernel;
    void *function;

    if (!launch || launch->bytes > HAND_PARAMETER_BYTES) {
        request->is_broken = true;
        return CUDA_ERROR_INVALID_VALUE;
    }
    part = request_part(request, &node->at, launch->bytes);
    bytes = scratch_take_zeros(request->scratch, 2 * HAND_PARAMETER_BYTES);
    if (!part || !bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(bytes, part, launch->bytes);
    if (!launch_function(launch->function, &function, &is_kernel))
        return CUDA_ERROR_INVALID_HANDLE;
    is_kernel &= is_called(request, "_v2");
    node->parameter_bytes = launch->bytes;
    node->extra[0] = (void *)EXTRA_BUFFER;
    node->extra[1] = bytes;
    node->extra[2] = (void *)EXTRA_SIZE;
    node->extra[3] = &node->parameter_bytes;
    node->extra[4] = (void *)EXTRA_END;
    *to = (struct kernel_node){.function = is_kernel ? NULL : function,
                               .kernel = is_kernel ? function : NULL,
                               .context = is_kernel ? node->context : NULL,
                               .shared_bytes = launch->shared_bytes,
                               .extra = node->extra};
    memcpy(to->grid, launch->grid, sizeof(to->grid));
    memcpy(to->block, launch->block, sizeof(to->block));
    return CUDA_SUCCESS;
}

/* Memory that was only sent is not there when the graph is launched. */
static CUresult take_copy(struct request *request, struct node *node)
{
    const struct hand_copy *copy = request_part(request, &node->at, sizeof(*copy));

    if (!copy || !copy->width || !copy->height || !copy->depth ||
        copy->from.kind == HAND_PLACE_SENT || copy->to.kind == HAND_PLACE_SENT) {
        request->is_broken = true;
        return CUDA_ERROR_INVALID_VALUE;
    }
    return copy_make(request, copy, NULL, NULL, &node->does.copy);
}

static CUresult take_function(struct request *request, struct node *node)
{
    const struct hand_callback *callback = request_part(request, &node->at, sizeof(*callback));

    if (!callback)
        return CUDA_ERROR_INVALID_VALUE;
    node->callback = callback_new(callback);
    if (!node->callback)
        return CUDA_ERROR_OUT_OF_MEMORY;
    node->does.host = (struct host_node){callback_call, node->callback};
    return CUDA_SUCCESS;
}

/* Copies have a context of their own behind their parameters. */
static CUresult call_driver(struct request *request, struct node *node, void **made)
{
    void *function = driver_function(request->number), *does = &node->does;
    size_t count = node->head->dependencies;
    bool has_context = is_called(request, "Memcpy");

    if (!function)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (is_called(request, "cuGraphAdd"))
        return has_context
                   ? ((CUresult(*)(void **, void *, void **, size_t, void *, void *))function)(
                         made, node->graph, node->after, count, does, node->context)
                   : ((CUresult(*)(void **, void *, void **, size_t, void *))function)(
                         made, node->graph, node->after, count, does);
    if (is_called(request, "cuGraphExec"))
        return has_context
                   ? ((CUresult(*)(void *, void *, void *, void *))function)(node->exec, node->node,
                                                                             does, node->context)
                   : ((CUresult(*)(void *, void *, void *))function)(node->exec, node->node, does);
    return ((CUresult(*)(void *, void *))function)(node->node, does);
}

static CUresult take_what_it_does(struct request *request, struct node *node)
{
    if (is_called(request, "KernelNode"))
        return take_kernel(request, node);
    if (is_called(request, "MemcpyNode"))
        return take_copy(request, node);
    if (is_called(request, "BatchMemOpNode"))
        return node_take_operations(request, node);
    if (is_called(request, "MemAllocNode"))
        return node_take_allocation(request, node);
    if (request->number == CALL_cuGraphAddNode)
        return node_take_general(request, node);
    return take_function(request, node);
}

CUresult hand_node(struct request *request)
{
    struct node node = {0};
    void *made = NULL;
    CUresult result = take_head(request, &node);

    if (result == CUDA_SUCCESS)
        result = take_what_it_does(request, &node);
    if (result == CUDA_SUCCESS)
        result = call_driver(request, &node, &made);
    if (result == CUDA_SUCCESS && made)
        request->extra = object_number(OBJECT_CUgraphNode, made, node.head->graph);
    if (result == CUDA_SUCCESS && is_called(request, "cuGraphAddMemAllocNode"))
        result = node_give_allocation(request, &node);
    else if (result == CUDA_SUCCESS && request->number == CALL_cuGraphAddNode)
        result = node_give_graphs(request, &node);
    if (result != CUDA_SUCCESS)
        free(node.callback);
    return result;
}

/* The bytes of a kernel's parameters, from where the driver keeps them. */
static CUresult give_parameters(struct request *request, const struct kernel_node *kernel,
                                struct hand_launch *launch)
{
    bool is_kernel = !kernel->function;
    void *function = is_kernel ? kernel->kernel : kernel->function;
    size_t offset, bytes, end = 0;
    uint8_t packed[HAND_PARAMETER_BYTES] = {0}, *to;

    for (size_t i = 0; kernel->parameters && i < HAND_PARAMETERS_MOST &&
                       launch_parameter(is_kernel, function, i, &offset, &bytes) == CUDA_SUCCESS;
         i++) {
        if (offset > sizeof(packed) || bytes > sizeof(packed) - offset)
            return CUDA_ERROR_NOT_SUPPORTED;
        memcpy(packed + offset, kernel->parameters[i], bytes);
        end = offset + bytes > end ? offset + bytes : end;
    }
    launch->bytes = (uint32_t)end;
    to = request_answer(request, end);
    if (to)
        memcpy(to, packed, end);
    return to ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult get_kernel(struct request *request, void *node)
{
    CUresult (*get)(void *, struct kernel_node *) = driver_function(request->number);
    struct hand_launch *launch = request_answer(request, sizeof(*launch));
    struct kernel_node kernel = {0};
    CUresult result = get && launch ? get(node, &kernel) : CUDA_ERROR_NOT_SUPPORTED;

    if (result != CUDA_SUCCESS)
        return result;
    launch->function = kernel.function ? object_number(OBJECT_CUfunction, kernel.function, 0)
                                       : object_number(OBJECT_CUkernel, kernel.kernel, 0);
    launch->shared_bytes = kernel.shared_bytes;
    memcpy(launch->grid, kernel.grid, sizeof(launch->grid));
    memcpy(launch->block, kernel.block, sizeof(launch->block));
    return give_parameters(request, &kernel, launch);
}

static CUresult get_function(struct request *request, void *node)
{
    CUresult (*get)(void *, struct host_node *) = driver_function(request->number);
    struct hand_called *to = request_answer(request, sizeof(*to));
    struct host_node host = {0};
    CUresult result = get && to ? get(node, &host) : CUDA_ERROR_NOT_SUPPORTED;

    if (result == CUDA_SUCCESS && host.function == callback_call)
        *to = callback_what(host.user);
    return result;
}

CUresult hand_node_get(struct request *request)
{
    const struct hand_object *head = (const void *)request->head;
    void *node;

    if (request->head_bytes < sizeof(*head) ||
        !object_find(OBJECT_CUgraphNode, head->object, &node) || !node)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_called(request, "Kernel"))
        return get_kernel(request, node);
    if (is_called(request, "BatchMemOp"))
        return node_get_operations(request, node);
    if (is_called(request, "MemAlloc"))
        return node_get_allocation(request, node);
    return get_function(request, node);
}
