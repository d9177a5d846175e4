// SPDX-License-Identifier: MIT
#include "client.h"

#include <stdint.h>

/* Structures that hold objects and addresses, laid out as the driver's. */
struct instantiation {
    uint64_t flags;
    CUstream stream;
    CUgraphNode node;
    unsigned int result;
};

struct update {
    unsigned int result;
    CUgraphNode node, from;
};

struct fill_node {
    CUdeviceptr to;
    size_t pitch;
    unsigned int value, element;
    size_t width, rows;
};

struct memory_operation {
    unsigned int operation;
    CUdeviceptr at;
    uint64_t value;
    unsigned int flags;
    uint64_t rest[2];
};

struct resource {
    unsigned int type;
    CUdeviceptr at;
    unsigned int format, channels;
    size_t bytes;
    uint64_t rest[13];
};

static void write_by_operation(CUstream stream)
{
    struct memory_operation operation = {.operation = 2, .value = 4711};
    void *pinned;

    ok(cuMemHostAlloc(&pinned, 4096, 0));
    operation.at = (uintptr_t)pinned + 8;
    ok(cuStreamBatchMemOp_v2(stream, 1, &operation, 0));
    ok(cuStreamSynchronize(stream));
    must(((unsigned int *)pinned)[2] == 4711);
    operation.at = 0x7f0000000000;
    is(cuStreamBatchMemOp_v2(stream, 1, &operation, 0), CUDA_ERROR_INVALID_VALUE);
}

static void update_graph(CUstream stream)
{
    CUdeviceptr at = allocate_device(4096);
    struct fill_node fill = {
        .to = at, .pitch = 128, .value = 7, .element = 4, .width = 16, .rows = 4096 / 128};
    struct instantiation way = {.stream = stream, .node = (CUgraphNode)0x1234};
    struct update update = {.node = (CUgraphNode)0x1234};
    CUgraph graph, other;
    CUgraphNode node;
    CUgraphExec exec;

    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, NULL));
    fill.rows++;
    is(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, NULL), CUDA_ERROR_INVALID_VALUE);
    ok(cuGraphInstantiateWithParams(&exec, graph, &way));
    must(way.stream == stream && !way.node);
    ok(cuGraphExecUpdate_v2(exec, graph, &update));
    must(!update.result && !update.node);
    ok(cuGraphLaunch(exec, stream));
    ok(cuGraphCreate(&other, 0));
    is(cuGraphExecUpdate_v2(exec, other, &update), 910);
    must(update.result == 2 && !update.node);
    ok(cuGraphAddEmptyNode(&node, other, NULL, 0));
    is(cuGraphExecUpdate_v2(exec, other, &update), 910);
    must(update.result == 3 && update.node == node);
    ok(cuStreamSynchronize(stream));
}

void check_structures(void)
{
    struct resource resource = {.type = 2, .format = 32, .channels = 1, .bytes = 4096};
    uint64_t settings[13] = {0};
    unsigned long long texture;
    CUstream stream;

    begin_context();
    ok(cuStreamCreate(&stream, 0));
    write_by_operation(stream);
    update_graph(stream);
    resource.at = allocate_device(4096);
    ok(cuTexObjectCreate(&texture, &resource, settings, NULL));
    ok(cuTexObjectDestroy(texture));
    resource.bytes++;
    is(cuTexObjectCreate(&texture, &resource, settings, NULL), CUDA_ERROR_INVALID_VALUE);
    resource.type = 0;
    is(cuTexObjectCreate(&texture, &resource, settings, NULL), CUDA_ERROR_INVALID_HANDLE);
}
