// SPDX-License-Identifier: MIT
/* Nodes of graphs, made by the calls for nodes of any kind. */
#include "client.h"

#include <string.h>

struct operation {
    unsigned int operation;
    CUdeviceptr at;
    uint64_t value;
    unsigned int flags;
    uint64_t rest[2];
};

struct operations {
    CUcontext context;
    unsigned int count;
    struct operation *list;
    unsigned int flags;
};

struct any_node {
    unsigned int type, reserved[3];
    union {
        uint64_t words[29];
        struct {
            CUfunction function;
            unsigned int grid[3], block[3], shared;
            void **parameters, **extra;
            CUfunction kernel;
            CUcontext context;
        } kernel;
        struct {
            CUdeviceptr to;
            size_t pitch;
            unsigned int value, element;
            size_t width, rows;
            CUcontext context;
        } fill;
        struct {
            unsigned int flags, reserved;
            CUcontext context;
            CUDA_MEMCPY3D of;
        } copy;
        struct {
            CUhostFn function;
            void *user;
        } host;
        struct {
            CUgraph graph;
            unsigned int is_moved;
        } child;
        CUevent event;
        CUDA_MEM_ALLOC_NODE_PARAMS allocation;
        CUdeviceptr freed;
        struct operations operations;
        struct {
            uint64_t handle;
            unsigned int kind, size;
            CUgraph *graphs;
            CUcontext context;
        } conditional;
    };
    uint64_t rest;
};

#define ADD CUgraphNode *made, CUgraph graph, const CUgraphNode *after

CUresult cuGraphAddNode(ADD, size_t count, struct any_node *of);
CUresult cuGraphAddNode_v2(ADD, const uint64_t *edges, size_t count, struct any_node *of);
CUresult cuGraphNodeGetParams(CUgraphNode node, struct any_node *to);
CUresult cuGraphNodeSetParams(CUgraphNode node, struct any_node *of);
CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, struct any_node *of);
CUresult cuGraphAddBatchMemOpNode(ADD, size_t count, const struct operations *of);
CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, struct operations *to);
CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const struct operations *of);
CUresult cuGraphConditionalHandleCreate(uint64_t *handle, CUgraph graph, CUcontext context,
                                        unsigned int start, unsigned int flags);

static CUgraph graph;
static _Atomic unsigned int node_calls;

static void count_call(void *user)
{
    must(user == &node_calls);
    node_calls++;
}

/* A kernel counts up, then the program's function is called; the kernel counts elsewhere then. */
static void add_kernel_and_host(void)
{
    CUdeviceptr at[2];
    void *parameters[] = {&at[0]};
    struct any_node kernel = {.type = 0}, host = {.type = 3}, told;
    CUgraphNode nodes[2];
    CUgraphExec exec;
    CUmodule module;

    for (unsigned int i = 0; i < 2; i++) {
        at[i] = allocate_device(4096);
        ok(cuMemsetD8_v2(at[i], 0, 4));
    }
    kernel.kernel.function = load_function(&module, "count");
    for (unsigned int i = 0; i < 3; i++)
        kernel.kernel.grid[i] = kernel.kernel.block[i] = 1;
    kernel.kernel.parameters = parameters;
    host.host.function = count_call;
    host.host.user = &node_calls;
    ok(cuGraphAddNode(&nodes[0], graph, NULL, 0, &kernel));
    ok(cuGraphAddNode_v2(&nodes[1], graph, nodes, (uint64_t[]){0}, 1, &host));
    ok(cuGraphNodeGetParams(nodes[0], &told));
    must(told.type == 0 && told.kernel.function == kernel.kernel.function);
    must(*(CUdeviceptr *)told.kernel.parameters[0] == at[0]);
    ok(cuGraphNodeGetParams(nodes[1], &told));
    must(told.type == 3 && told.host.function == count_call && told.host.user == &node_calls);
    parameters[0] = &at[1];
    ok(cuGraphNodeSetParams(nodes[0], &kernel));
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ok(cuGraphExecNodeSetParams(exec, nodes[1], &host));
    ok(cuGraphLaunch(exec, NULL));
    ok(cuCtxSynchronize());
    must(read_word(at[0]) == 0 && read_word(at[1]) == 1 && node_calls == 1);
}

static void add_memory(void)
{
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .WidthInBytes = 1 << 20,
                          .Height = 1,
                          .Depth = 1};
    struct any_node allocation = {.type = 10}, fill = {.type = 2}, of = {.type = 1}, told;
    struct any_node freed = {.type = 11};
    CUgraphNode node, last;

    allocation.allocation.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    allocation.allocation.bytesize = 1 << 20;
    ok(cuGraphAddNode(&node, graph, NULL, 0, &allocation));
    must(allocation.allocation.dptr);
    ok(cuGraphNodeGetParams(node, &told));
    must(told.type == 10 && told.allocation.bytesize == 1 << 20);
    must(told.allocation.dptr == allocation.allocation.dptr);
    fill.fill.to = allocation.allocation.dptr;
    fill.fill.element = 4;
    fill.fill.width = (1 << 20) / 4;
    fill.fill.rows = 1;
    ok(cuGraphAddNode(&last, graph, &node, 1, &fill));
    fill.fill.width++;
    is(cuGraphAddNode(&last, graph, &node, 1, &fill), CUDA_ERROR_INVALID_VALUE);
    copy.srcDevice = allocation.allocation.dptr;
    copy.dstDevice = allocate_device(1 << 20);
    of.copy.of = copy;
    ok(cuGraphAddNode(&last, graph, &node, 1, &of));
    ok(cuGraphNodeSetParams(last, &of));
    of.copy.of.WidthInBytes++;
    is(cuGraphNodeSetParams(last, &of), CUDA_ERROR_INVALID_VALUE);
    freed.freed = allocation.allocation.dptr;
    ok(cuGraphAddNode(&last, graph, &node, 1, &freed));
    allocation.allocation.accessDescCount = 1;
    is(cuGraphAddNode(&node, graph, NULL, 0, &allocation), CUDA_ERROR_INVALID_VALUE);
    allocation.allocation.accessDescCount = SIZE_MAX;
    is(cuGraphAddNode(&node, graph, NULL, 0, &allocation), CUDA_ERROR_INVALID_VALUE);
}

static void add_operations(void)
{
    struct operation list[2] = {{.operation = 2, .value = 4711}, {.operation = 2, .value = 4712}};
    struct any_node node_of = {.type = 12, .operations = {.count = 2, .list = list, .flags = 0}};
    struct operations told;
    CUgraphExec exec;
    CUgraphNode node;
    void *pinned;

    ok(cuMemHostAlloc(&pinned, 4096, 0));
    list[0].at = (uintptr_t)pinned;
    list[1].at = (uintptr_t)pinned + 4;
    ok(cuGraphAddNode(&node, graph, NULL, 0, &node_of));
    ok(cuGraphBatchMemOpNodeGetParams(node, &told));
    must(told.count == 2 && !memcmp(told.list, list, sizeof(list)));
    list[1].value = 4713;
    ok(cuGraphNodeSetParams(node, &node_of));
    ok(cuGraphNodeGetParams(node, &node_of));
    must(node_of.operations.list[1].value == 4713);
    node_of.operations.list = list;
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ok(cuGraphExecBatchMemOpNodeSetParams(exec, node, &node_of.operations));
    ok(cuGraphLaunch(exec, NULL));
    ok(cuCtxSynchronize());
    must(((unsigned int *)pinned)[0] == 4711);
    list[1].at = 0x7f0000000000;
    is(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &node_of.operations),
       CUDA_ERROR_INVALID_VALUE);
    list[1].operation = 7;
    is(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &node_of.operations),
       CUDA_ERROR_NOT_SUPPORTED);
    node_of.operations.count = 257;
    is(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &node_of.operations),
       CUDA_ERROR_INVALID_VALUE);
}

/* What is done on a condition is in graphs of the node's, which get nodes like any other. */
static void add_graphs(void)
{
    struct any_node conditional = {.type = 13}, empty = {.type = 5}, child = {.type = 4}, told;
    CUgraph outer, moved;
    CUgraphNode node, inner;
    uint64_t handle;

    ok(cuGraphCreate(&outer, 0));
    ok(cuGraphConditionalHandleCreate(&conditional.conditional.handle, outer, NULL, 1, 1));
    conditional.conditional.size = 2;
    ok(cuGraphAddNode(&node, outer, NULL, 0, &conditional));
    must(conditional.conditional.graphs[0] != conditional.conditional.graphs[1]);
    for (unsigned int i = 0; i < 2; i++)
        ok(cuGraphAddNode(&inner, conditional.conditional.graphs[i], NULL, 0, &empty));
    ok(cuGraphCreate(&moved, 0));
    child.child.graph = moved;
    ok(cuGraphAddNode(&inner, outer, NULL, 0, &child));
    ok(cuGraphNodeGetParams(inner, &told));
    must(told.type == 4 && told.child.graph);
    child.child.is_moved = 1;
    ok(cuGraphAddNode(&inner, outer, NULL, 0, &child));
    ok(cuGraphAddNode(&inner, moved, NULL, 0, &empty));
    child.child.graph = outer;
    is(cuGraphAddNode(&node, outer, NULL, 0, &child), CUDA_ERROR_INVALID_VALUE);
    handle = conditional.conditional.handle;
    conditional.conditional.handle = 0x1234;
    is(cuGraphAddNode(&node, outer, NULL, 0, &conditional), CUDA_ERROR_INVALID_VALUE);
    conditional.conditional.size = 0;
    is(cuGraphAddNode(&node, outer, NULL, 0, &conditional), CUDA_ERROR_INVALID_VALUE);
    ok(cuGraphDestroy(outer));
    is(cuGraphAddNode(&inner, moved, NULL, 0, &empty), CUDA_ERROR_INVALID_VALUE);
    is(cuGraphAddNode(&inner, conditional.conditional.graphs[0], NULL, 0, &empty),
       CUDA_ERROR_INVALID_VALUE);
    conditional.conditional.handle = handle;
    conditional.conditional.size = 2;
    is(cuGraphAddNode(&node, graph, NULL, 0, &conditional), CUDA_ERROR_INVALID_VALUE);
}

static void add_events(void)
{
    struct any_node record = {.type = 7}, wait = {.type = 6}, none = {.type = 20};
    CUgraphNode node;
    CUevent event;

    ok(cuEventCreate(&event, 0));
    record.event = wait.event = event;
    ok(cuGraphAddNode(&node, graph, NULL, 0, &record));
    ok(cuGraphNodeSetParams(node, &record));
    ok(cuGraphAddNode(&node, graph, &node, 1, &wait));
    ok(cuGraphNodeSetParams(node, &wait));
    is(cuGraphAddNode(&node, graph, NULL, 0, &none), CUDA_ERROR_NOT_SUPPORTED);
    is(cuGraphNodeSetParams(node, &none), CUDA_ERROR_NOT_SUPPORTED);
    is(cuGraphAddNode(NULL, graph, NULL, 0, &record), CUDA_ERROR_INVALID_VALUE);
    is(cuGraphAddNode(&node, graph, NULL, 1, &record), CUDA_ERROR_INVALID_VALUE);
    is(cuGraphAddNode_v2(&node, graph, NULL, (uint64_t[]){0}, 1, &record),
       CUDA_ERROR_INVALID_VALUE);
    is(cuGraphAddNode(&node, graph, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
}

void check_any_nodes(void)
{
    begin_context();
    ok(cuGraphCreate(&graph, 0));
    add_kernel_and_host();
    add_operations();
    add_memory();
    add_events();
    add_graphs();
}
