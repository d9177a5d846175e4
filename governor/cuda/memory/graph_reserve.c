// SPDX-License-Identifier: MIT
#include "graph_reserve.h"

#include "charge.h"
#include "real.h"

static uint64_t ask_attribute(const struct gpu *gpu, CUgraphMem_attribute attribute)
{
    cuuint64_t value = 0;

    DRIVER(cuDeviceGetGraphMemAttribute, gpu->device, attribute, &value);
    return value;
}

void graph_settle(struct gpu *gpu, uint64_t ahead)
{
    struct charge charge = {.gpu = gpu};

    pthread_mutex_lock(&gpu->own_lock);
    charge.bytes = gpu->graphs + ahead;
    charge_resize(&charge, ask_attribute(gpu, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT));
    gpu->graphs = charge.bytes;
    pthread_mutex_unlock(&gpu->own_lock);
}

uint64_t graph_growth(const struct gpu *gpu, uint64_t bytes)
{
    uint64_t reserved = ask_attribute(gpu, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
    uint64_t used = ask_attribute(gpu, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
    uint64_t unused = reserved > used ? reserved - used : 0;

    return bytes > unused ? bytes - unused : 0;
}

bool graph_trim(struct gpu *gpu)
{
    uint64_t before = gpu->graphs;

    if (!before || DRIVER(cuDeviceGraphMemTrim, gpu->device) != CUDA_SUCCESS)
        return false;
    graph_settle(gpu, 0);
    return gpu->graphs < before;
}
