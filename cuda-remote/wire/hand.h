/* SPDX-License-Identifier: MIT */
/*
 * Heads of the requests whose arguments do not follow from a signature. Their parts follow in the
 * order that is said here, each from a multiple of 8 bytes on.
 */
#ifndef CUDA_REMOTE_HAND_H
#define CUDA_REMOTE_HAND_H

#include <stdint.h>

/* Requests that are no entry point's. */
enum hand_number {
    HAND_LAYOUT = 2000, /* hand_object, a function; answer's extra: the number of its parameters;
                           part: hand_parameter of each */
    HAND_CALLED,        /* no head; waits until the driver calls back, and is asked again when that
                           was done; answer's part: hand_called */
    HAND_LINKED,        /* hand_object, a link that is complete; answer's part: what was linked */
    HAND_OUTPUT, /* any head; answer's parts: hand_output, and HAND_OUTPUT_MOST bytes, those of
                    standard output first */
};

#define HAND_PARAMETERS_MOST 4000u
#define HAND_PARAMETER_BYTES 32768u
#define HAND_ATTRIBUTES_MOST 64u
#define HAND_OPTIONS_MOST    64u
#define HAND_LOG_MOST        16384u
#define HAND_NAME_MOST       4096u

#define HAND_OUTPUT_MOST (32u << 10)

/* @is_lost: some was, since the last time. */
struct hand_output {
    uint32_t out_bytes, err_bytes;
    uint32_t is_lost, reserved;
};

struct hand_object {
    uint64_t object;
};

struct hand_parameter {
    uint32_t offset, bytes;
};

/* cuLaunch*Kernel*. Parts: @attributes hand_attribute, @bytes of parameters as they lie in the
 * kernel's parameter space. cuOccupancyMax*Cluster*: the same without parameters; the answer's
 * extra is a number. */
struct hand_launch {
    uint64_t function;
    uint64_t stream;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    uint32_t bytes;
    uint32_t attributes;
    uint32_t reserved;
};

/* As CUlaunchAttribute is; of an event the number is in value[0]. */
struct hand_attribute {
    uint32_t id, pad;
    uint64_t value[8];
};

struct hand_option {
    uint32_t id, reserved;
    uint64_t value; /* of a buffer: 0 */
};

/*
 * cuModuleLoad*, cuLibraryLoad*, cuLinkCreate, cuLinkAddData. Parts: @bytes of the image, @options
 * and @library_options hand_option, the name with its 0. The answer's extra is what was made; its
 * parts: the options' values, 8 bytes each, and the logs.
 */
struct hand_image {
    uint64_t link; /* to which it is added */
    uint64_t bytes;
    uint32_t type;
    uint32_t name_bytes;
    uint32_t options, library_options;
    uint32_t info_log, error_log; /* bytes of the caller's buffers; 0: none */
};

/* cuMemHostAlloc: memory that is shared; cuMemFreeHost: the same. */
struct hand_host_memory {
    uint64_t address, bytes;
    uint64_t flags;
};

/*
 * An end of a copy of rows. An address is that of the first row's first byte; of an array there are
 * coordinates, x in bytes. @pitch: bytes from row to row; @height: rows from slice to slice.
 */
enum hand_place_kind {
    HAND_PLACE_SENT = 1, /* memory of the program alone: its rows go as a part, without gaps */
    HAND_PLACE_SHARED,
    HAND_PLACE_DEVICE,
    HAND_PLACE_ARRAY,
};

struct hand_place {
    uint32_t kind, reserved;
    uint64_t where; /* an address, or an array's number */
    uint64_t x, y, z, lod;
    uint64_t pitch, height;
    uint64_t context;
};

/* cuMemcpy2D*, cuMemcpy3D*. Part: what @from sends. The answer's part: what @to is sent. */
struct hand_copy {
    struct hand_place from, to;
    uint64_t width, height, depth; /* bytes, rows, slices */
    uint64_t stream;
};

/* cuStreamGetCaptureInfo_v2, _v3: hand_object, a stream. The answer's extra: how many nodes there
 * are; parts: hand_capture, and hand_dependency of each, as far as HAND_DEPENDENCIES_MOST. */
#define HAND_DEPENDENCIES_MOST 1024u

struct hand_capture {
    uint64_t id, graph;
    uint32_t status, reserved;
};

/* @edge: as CUgraphEdgeData is. */
struct hand_dependency {
    uint64_t node, edge;
};

/*
 * cuGraphAdd*Node, cuGraph*NodeSetParams, cuGraphExec*NodeSetParams of kernels, copies, functions
 * of the program, memory, its operations; and cuGraphAddNode, of those that have no call of their
 * own. Parts: @dependencies numbers of nodes; then hand_launch and its parameters, or hand_copy
 * without anything sent, or hand_callback, or hand_operations and its @count structures, or
 * hand_allocation and @count structures, or hand_general. Of Add the answer's extra is the node;
 * its part is an address of memory, and @size numbers of graphs of a conditional one.
 * cuGraphKernelNodeGetParams*, cuGraphHostNodeGetParams, cuGraphBatchMemOpNodeGetParams,
 * cuGraphMemAllocNodeGetParams: hand_object, a node. The answer's parts: hand_launch and its
 * parameters, or hand_called, or hand_operations or hand_allocation and the structures behind it.
 */
struct hand_node {
    uint64_t exec, graph, node, context;
    uint64_t dependencies;
};

#define HAND_OPERATIONS_MOST    256u /* as the driver's */
#define HAND_OPERATION_BYTES    48u
#define HAND_ACCESSES_MOST      64u
#define HAND_ACCESS_BYTES       12u
#define HAND_POOL_BYTES         88u
#define HAND_CONDITIONAL_GRAPHS 1024u

/* Behind it CUstreamBatchMemOpParams. @context: of an answer. */
struct hand_operations {
    uint64_t context;
    uint32_t count, flags;
};

/* @pool: CUmemPoolProps. Behind it CUmemAccessDesc. */
struct hand_allocation {
    uint8_t pool[HAND_POOL_BYTES];
    uint64_t bytes, address;
    uint32_t count, reserved;
};

/* cuGraphAddNode: a conditional node of @size graphs with a condition, or one that a graph is moved
 * into, which is no other's then. */
struct hand_general {
    uint32_t node_type;
    uint32_t kind, size;
    uint32_t reserved;
    uint64_t handle, graph;
};

/*
 * Memory and pools that go to other programs of the slice. Natively a file descriptor is passed on;
 * here it stays in the worker, and the program passes on a file with a token. cuMemExport*,
 * cuMemPoolExport*: the answer's part is hand_token. cuMemImport*, cuMemPoolImport*: @token; the
 * answer's extra is what was made.
 */
struct hand_token {
    uint64_t magic;
    uint8_t worker[16], secret[16];
};

#define HAND_TOKEN_MAGIC 0x6e656b6f74756376ull

struct hand_share {
    uint64_t object;
    uint64_t flags;
    uint32_t type, reserved;
    struct hand_token token;
};

/* cuGraphDebugDotPrint. The answer's part: the text. */
#define HAND_DOT_MOST (4u << 20)

struct hand_dot {
    uint64_t graph;
    uint32_t flags, reserved;
};

/* cuPointerGetAttribute*. Part: @count numbers of attributes, 4 bytes each. Answer: hand_value of
 * each. cuPointerSetAttribute: @value. */
struct hand_pointer {
    uint64_t address;
    uint64_t value;
    uint32_t count;
    uint32_t reserved;
};

/* cuLaunchHostFunc*, cuStreamAddCallback*, cuUserObjectCreate; and with a device in @flags
 * cuDeviceRegisterAsyncNotification, cuLogsRegisterCallback, of which the answer's extra is the
 * registration. @function and @user mean something
 * to the program alone. @flags: the last argument; @count: of references, of a user object. */
struct hand_callback {
    uint64_t stream;
    uint64_t function, user;
    uint32_t flags, count;
};

enum hand_called_kind {
    HAND_CALLED_PLAIN,
    HAND_CALLED_STREAM, /* it gets the stream and @result, too */
    HAND_CALLED_NOTIFY, /* what a device says: @result is its kind, @value its number; @stream: the
                           registration */
    HAND_CALLED_LOG, /* @result: how grave it is; @value: bytes of text, which are the next part */
};

#define HAND_CALLED_TEXT 1024u

struct hand_called {
    uint64_t function, user;
    uint64_t stream;
    uint32_t result;
    uint32_t kind;
    uint64_t value;
};

/* @written: a bit for each byte that the driver has written. @result: of this attribute alone. */
struct hand_value {
    uint64_t value;
    uint32_t written;
    uint32_t result;
};

#endif
