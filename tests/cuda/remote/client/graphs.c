// SPDX-License-Identifier: MIT
#include "client.h"

/* A graph that was captured, and its nodes. */
void check_captured_graph(void)
{
    CUgraphNode nodes[4];
    size_t count = 4;
    unsigned int type;
    CUmodule module;
    CUfunction add;
    CUstream stream;
    CUgraphExec exec;
    CUgraph graph;
    CUdeviceptr at;
    void *parameters[] = {&at};

    begin_context();
    add = load_function(&module, "count");
    at = allocate_device(4096);
    ok(cuMemsetD8_v2(at, 0, 4096));
    ok(cuStreamCreate(&stream, 0));
    ok(cuStreamBeginCapture_v2(stream, 2));
    ok(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    ok(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    ok(cuStreamEndCapture(stream, &graph));
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (unsigned int i = 0; i < 5; i++)
        ok(cuGraphLaunch(exec, stream));
    ok(cuStreamSynchronize(stream));
    must(read_word(at) == 10);
    if (cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS && count == 2)
        ok(cuGraphNodeGetType(nodes[0], &type));
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    is(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
}

struct kernel_node {
    CUfunction function;
    unsigned int grid[3], block[3], shared;
    void **parameters, **extra;
};

struct host_node {
    CUhostFn function;
    void *user;
};

static _Atomic unsigned int node_calls;

static void count_node(void *user)
{
    must(user == &node_calls);
    node_calls++;
}

/* A kernel counts up where its parameter says; then a function of the program is called. */
static void kernel_nodes(void)
{
    CUdeviceptr at[2] = {0};
    void *parameters[] = {&at[0]}, *others[] = {&at[1]};
    struct kernel_node kernel = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .parameters = parameters};
    struct kernel_node told = {0};
    struct host_node host = {count_node, &node_calls}, told_host;
    CUgraphNode nodes[2];
    CUgraphExec exec;
    CUmodule module;
    CUgraph graph;

    kernel.function = load_function(&module, "count");
    for (unsigned int i = 0; i < 2; i++) {
        at[i] = allocate_device(4096);
        ok(cuMemsetD8_v2(at[i], 0, 4));
    }
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphAddKernelNode(&nodes[0], graph, NULL, 0, &kernel));
    ok(cuGraphAddHostNode(&nodes[1], graph, nodes, 1, &host));
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (unsigned int i = 0; i < 3; i++)
        ok(cuGraphLaunch(exec, NULL));
    ok(cuCtxSynchronize());
    must(read_word(at[0]) == 3 && node_calls == 3);
    ok(cuGraphKernelNodeGetParams(nodes[0], &told));
    must(told.function == kernel.function && told.grid[2] == 1 && !told.extra);
    must(*(CUdeviceptr *)told.parameters[0] == at[0]);
    ok(cuGraphHostNodeGetParams(nodes[1], &told_host));
    must(told_host.function == count_node && told_host.user == &node_calls);
    kernel.parameters = others;
    ok(cuGraphKernelNodeSetParams(nodes[0], &kernel));
    ok(cuGraphKernelNodeGetParams(nodes[0], &told));
    must(*(CUdeviceptr *)told.parameters[0] == at[1]);
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ok(cuGraphLaunch(exec, NULL));
    ok(cuCtxSynchronize());
    must(read_word(at[0]) == 3 && read_word(at[1]) == 1 && node_calls == 4);
    is(cuGraphAddHostNode(&nodes[1], graph, (CUgraphNode *)&graph, 1, &host),
       CUDA_ERROR_INVALID_VALUE);
}

/* A graph copies between the GPU and memory that it can reach when it is launched. */
static void copy_nodes(void)
{
    unsigned char own[64];
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = allocate_device(4096),
                          .WidthInBytes = sizeof(own),
                          .Height = 1,
                          .Depth = 1};
    void *pinned;
    CUgraph graph;
    CUgraphNode node;

    ok(cuGraphCreate(&graph, 0));
    ok(cuMemHostAlloc(&pinned, 4096, 0));
    copy.srcHost = pinned;
    ok(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL));
    copy.srcHost = own;
    is(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL), CUDA_ERROR_NOT_SUPPORTED);
    copy.srcHost = pinned;
    copy.Height = 4096;
    is(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* What a library asks that adds nodes to a graph which is being captured. */
static void capture_info(void)
{
    const CUgraphNode *last;
    CUgraph captured, graph;
    unsigned int status;
    CUstream stream;
    size_t count;
    uint64_t id;

    ok(cuStreamCreate(&stream, 0));
    ok(cuStreamGetCaptureInfo_v2(stream, &status, NULL, NULL, NULL, NULL));
    must(!status);
    ok(cuStreamBeginCapture_v2(stream, 2));
    ok(cuLaunchHostFunc(stream, count_node, &node_calls));
    ok(cuStreamGetCaptureInfo_v2(stream, &status, &id, &captured, &last, &count));
    must(status == 1 && id && count == 1 && *last);
    ok(cuStreamEndCapture(stream, &graph));
    must(graph == captured);
}

void check_graph_nodes(void)
{
    begin_context();
    kernel_nodes();
    copy_nodes();
    capture_info();
}
