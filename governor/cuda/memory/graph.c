// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "graph_reserve.h"
#include "join.h"
#include "meter.h"
#include "ranges.h"
#include "real.h"
#include "room.h"

#define GRAPHS_DEPTH 8

/*
 * The number of executable graphs that allocate memory. If it is 0, as in most programs, launches
 * pass at once.
 */
static _Atomic unsigned int graphs_with_memory;

static uint64_t needs_of(CUgraph graph, unsigned int depth);

static uint64_t needs_of_node(CUgraphNode node, unsigned int depth)
{
    CUDA_MEM_ALLOC_NODE_PARAMS parameters = {0};
    CUgraphNodeType type;
    CUgraph child;

    if (DRIVER(cuGraphNodeGetType, node, &type) != CUDA_SUCCESS)
        return 0;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH && depth < GRAPHS_DEPTH &&
        DRIVER(cuGraphChildGraphNodeGetGraph, node, &child) == CUDA_SUCCESS)
        return needs_of(child, depth + 1);
    if (type != CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
        DRIVER(cuGraphMemAllocNodeGetParams, node, &parameters) != CUDA_SUCCESS)
        return 0;
    return charge_round(parameters.bytesize, CHARGE_BLOCK);
}

static uint64_t needs_of(CUgraph graph, unsigned int depth)
{
    size_t count = 0;
    CUgraphNode *nodes;
    uint64_t bytes = 0;

    if (DRIVER(cuGraphGetNodes, graph, NULL, &count) != CUDA_SUCCESS || !count)
        return 0;
    nodes = calloc(count, sizeof(*nodes));
    if (nodes && DRIVER(cuGraphGetNodes, graph, nodes, &count) == CUDA_SUCCESS) {
        for (size_t i = 0; i < count; i++)
            bytes += needs_of_node(nodes[i], depth);
    }
    free(nodes);
    return bytes;
}

static CUresult keep_exec(CUresult result, const CUgraphExec *exec, CUgraph graph)
{
    struct charge needs = {0};

    if (result != CUDA_SUCCESS || real_depth || !gpu_current())
        return result;
    needs.bytes = needs_of(graph, 0);
    if (needs.bytes && ranges_put(&ranges_graphs, (uintptr_t)*exec, &needs) && !needs.bytes)
        graphs_with_memory++;
    return result;
}

CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
                            char *logBuffer, size_t bufferSize)
{
    return keep_exec(
        DRIVER(cuGraphInstantiate, phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize),
        phGraphExec, hGraph);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
                               char *logBuffer, size_t bufferSize)
{
    return keep_exec(
        DRIVER(cuGraphInstantiate_v2, phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize),
        phGraphExec, hGraph);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
                                     unsigned long long flags)
{
    return keep_exec(DRIVER(cuGraphInstantiateWithFlags, phGraphExec, hGraph, flags), phGraphExec,
                     hGraph);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    return keep_exec(DRIVER(cuGraphInstantiateWithParams, phGraphExec, hGraph, instantiateParams),
                     phGraphExec, hGraph);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *phGraphExec, CUgraph hGraph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    return keep_exec(
        DRIVER(cuGraphInstantiateWithParams_ptsz, phGraphExec, hGraph, instantiateParams),
        phGraphExec, hGraph);
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    struct charge needs;

    if (graphs_with_memory && !real_depth &&
        ranges_take(&ranges_graphs, (uintptr_t)hGraphExec, &needs))
        graphs_with_memory--;
    return DRIVER(cuGraphExecDestroy, hGraphExec);
}

static uint64_t needs_of_exec(CUgraphExec exec)
{
    struct charge needs = {0};

    ranges_get(&ranges_graphs, (uintptr_t)exec, &needs);
    return needs.bytes;
}

/* To make room, the reserve itself may have been trimmed: then it grows by more. */
static bool take_growth(struct gpu *gpu, uint64_t bytes, struct charge *charge)
{
    uint64_t wanted = graph_growth(gpu, bytes);

    while (room_take(gpu, wanted, charge)) {
        uint64_t now = graph_growth(gpu, bytes);

        if (now <= wanted)
            return true;
        charge_give(charge);
        wanted = now;
    }
    return false;
}

static CUresult run_exec(CUgraphExec exec, CUstream stream,
                         CUresult (*function)(CUgraphExec exec, CUstream stream))
{
    uint64_t bytes = needs_of_exec(exec);
    struct gpu *gpu = bytes ? gpu_current() : NULL;
    struct charge ahead = {0};
    CUresult result;

    if (gpu && !take_growth(gpu, bytes, &ahead))
        return CUDA_ERROR_OUT_OF_MEMORY;
    real_depth++;
    result = function(exec, stream);
    real_depth--;
    if (gpu)
        graph_settle(gpu, ahead.bytes);
    return result;
}

static CUresult run_without_memory(CUgraphExec exec, CUstream stream,
                                   CUresult (*function)(CUgraphExec exec, CUstream stream))
{
    CUresult result;

    real_depth++;
    result = function(exec, stream);
    real_depth--;
    return result;
}

/* Its time is measured as a whole: nothing can be put into it. */
static CUresult launch_graph(CUgraphExec exec, CUstream stream, bool per_thread,
                             CUresult (*function)(CUgraphExec exec, CUstream stream))
{
    struct launch launch = {.what = exec, .stream = stream, .per_thread = per_thread};
    CUresult result;

    if (real_depth)
        return function(exec, stream);
    if (!meter_before(&launch))
        return CUDA_ERROR_SYSTEM_NOT_READY;
    result = graphs_with_memory ? run_exec(exec, stream, function)
                                : run_without_memory(exec, stream, function);
    if (launch.batch)
        meter_launched(&launch, result == CUDA_SUCCESS);
    return result;
}

CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
    return launch_graph(hGraphExec, hStream, false, REAL(cuGraphLaunch));
}

CUresult cuGraphLaunch_ptsz(CUgraphExec hGraphExec, CUstream hStream)
{
    return launch_graph(hGraphExec, hStream, true, REAL(cuGraphLaunch_ptsz));
}

CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
    if (!graphs_with_memory || real_depth)
        return REAL(cuGraphUpload)(hGraphExec, hStream);
    return run_exec(hGraphExec, hStream, REAL(cuGraphUpload));
}

CUresult cuGraphUpload_ptsz(CUgraphExec hGraphExec, CUstream hStream)
{
    if (!graphs_with_memory || real_depth)
        return REAL(cuGraphUpload_ptsz)(hGraphExec, hStream);
    return run_exec(hGraphExec, hStream, REAL(cuGraphUpload_ptsz));
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    CUresult result = DRIVER(cuDeviceGraphMemTrim, device);
    struct gpu *gpu;

    if (real_depth || !graphs_with_memory)
        return result;
    gpu = gpu_of(device);
    if (gpu)
        graph_settle(gpu, 0);
    return result;
}
