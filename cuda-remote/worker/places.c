// SPDX-License-Identifier: MIT
/*
 * Where memory is. With unified addresses the driver takes any address of this process as one to
 * copy from or to. Only what it has given out itself, or what the program shares, may be one.
 */
#include "worker.h"

#include "numbers.h"

enum { POINTER_MEMORY_TYPE = 2, POINTER_RANGE_START = 11, POINTER_RANGE_SIZE = 12 };
enum { MEMORY_DEVICE = 2 };

static bool ask_pointer(int attribute, uint64_t address, void *value)
{
    CUresult (*get)(void *, int, CUdeviceptr) = driver_function(CALL_cuPointerGetAttribute);

    return get && get(value, attribute, address) == CUDA_SUCCESS;
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
        return false;
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
