// SPDX-License-Identifier: MIT
/*
 * Where memory is. With unified addresses the driver takes any address of this process as one to
 * copy from or to. Only what it has given out itself, or what the program shares, may be one.
 */
#include "worker.h"

#include <pthread.h>
#include <stdlib.h>

#include "numbers.h"

enum { POINTER_MEMORY_TYPE = 2, POINTER_RANGE_START = 11, POINTER_RANGE_SIZE = 12 };
enum { MEMORY_DEVICE = 2 };

static _Thread_local bool is_asking;

static bool ask_pointer(int attribute, uint64_t address, void *value)
{
    CUresult (*get)(void *, int, CUdeviceptr) = driver_function(CALL_cuPointerGetAttribute);
    bool is_known;

    is_asking = true;
    is_known = get && get(value, attribute, address) == CUDA_SUCCESS;
    is_asking = false;
    return is_known;
}

bool place_is_asking(void)
{
    return is_asking;
}

/*
 * What graphs allocate has its address before it has memory, and the driver knows nothing of it
 * until the graph runs. It is as long as the node that allocates.
 */
struct graph_memory {
    struct graph_memory *next;
    uint64_t node, address, bytes;
};

static pthread_mutex_t graph_lock = PTHREAD_MUTEX_INITIALIZER;
static struct graph_memory *graph_memory;

static bool is_there(const struct graph_memory *memory)
{
    void *node;

    return object_find(OBJECT_CUgraphNode, memory->node, &node);
}

static void forget_ended(void)
{
    for (struct graph_memory **at = &graph_memory; *at;) {
        struct graph_memory *ended = *at;

        if (is_there(ended)) {
            at = &ended->next;
            continue;
        }
        *at = ended->next;
        free(ended);
    }
}

bool place_remember(uint64_t node, uint64_t address, uint64_t bytes)
{
    struct graph_memory *memory = malloc(sizeof(*memory));

    if (!memory)
        return false;
    pthread_mutex_lock(&graph_lock);
    forget_ended();
    *memory = (struct graph_memory){
        .next = graph_memory, .node = node, .address = address, .bytes = bytes};
    graph_memory = memory;
    pthread_mutex_unlock(&graph_lock);
    return true;
}

static bool is_of_a_graph(uint64_t address, uint64_t bytes)
{
    bool is_in = false;

    pthread_mutex_lock(&graph_lock);
    for (const struct graph_memory *at = graph_memory; at && !is_in; at = at->next)
        is_in = address >= at->address && bytes <= at->bytes &&
                address - at->address <= at->bytes - bytes && is_there(at);
    pthread_mutex_unlock(&graph_lock);
    return is_in;
}

bool place_is_usable(struct request *request, uint64_t address, uint64_t bytes)
{
    uint64_t start = 0;
    size_t size = 0;
    unsigned int type = 0;

    if (!bytes || request_uses(request, address, bytes))
        return true;
    if (!ask_pointer(POINTER_MEMORY_TYPE, address, &type) || type != MEMORY_DEVICE ||
        !ask_pointer(POINTER_RANGE_START, address, &start) ||
        !ask_pointer(POINTER_RANGE_SIZE, address, &size))
        return is_of_a_graph(address, bytes);
    return address >= start && bytes <= size && address - start <= size - bytes;
}

uint64_t current_context(void)
{
    CUresult (*get)(CUcontext *) = driver_function(CALL_cuCtxGetCurrent);
    CUcontext context = NULL;

    if (!get || get(&context) != CUDA_SUCCESS)
        return 0;
    return object_number(OBJECT_CUcontext, context, 0);
}
