// SPDX-License-Identifier: MIT
/* A GPU's multiprocessors, in parts. What the driver hides in a resource is a mark here, which the
 * next call wants to see again. */
#include "fake.h"

#include <string.h>

#define MARK            0x5a5a000000001234ull
#define MULTIPROCESSORS 132u

struct resource {
    unsigned int type, number;
    uint64_t mark[11];
    unsigned int count;
    uint64_t rest[5];
};
_Static_assert(sizeof(struct resource) == 144, "CUdevResource");

static void put_resource(struct resource *to, unsigned int number, unsigned int count)
{
    *to = (struct resource){.type = 1, .number = number, .count = count, .rest = {[4] = MARK}};
    for (unsigned int i = 0; i < 11; i++)
        to->mark[i] = MARK + number;
}

static bool is_whole(const struct resource *resource)
{
    for (unsigned int i = 0; i < 11; i++)
        if (resource->mark[i] != MARK + resource->number)
            return false;
    return resource->type == 1;
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define GET(name, ...)                                                                             \
    CUresult name(__VA_ARGS__, struct resource *to, unsigned int type)                             \
    {                                                                                              \
        ENTER();                                                                                   \
        if (!to || type != 1)                                                                      \
            return CUDA_ERROR_INVALID_VALUE;                                                       \
        put_resource(to, 0, MULTIPROCESSORS);                                                      \
        return CUDA_SUCCESS;                                                                       \
    }
GET(cuDeviceGetDevResource, CUdevice device)
GET(cuCtxGetDevResource, CUcontext context)
GET(cuGreenCtxGetDevResource, CUgreenCtx context)
GET(cuStreamGetDevResource, CUstream stream)
GET(cuStreamGetDevResource_ptsz, CUstream stream)

static unsigned int split(struct resource *to, unsigned int groups, unsigned int of,
                          struct resource *left, unsigned int each)
{
    unsigned int most = of / each, n = groups < most ? groups : most;

    for (unsigned int i = 0; to && i < n; i++)
        put_resource(&to[i], i + 1, each);
    if (left)
        put_resource(left, 100, of - n * each);
    return n;
}

CUresult cuDevSmResourceSplitByCount(struct resource *to, unsigned int *groups,
                                     const struct resource *of, struct resource *left,
                                     unsigned int flags, unsigned int least)
{
    ENTER();
    if (!groups || !of || !is_whole(of) || !least)
        return CUDA_ERROR_INVALID_VALUE;
    *groups = split(to, *groups, of->count, left, least);
    return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplit(struct resource *to, unsigned int groups, const struct resource *of,
                              struct resource *left, unsigned int flags, unsigned int *parameters)
{
    ENTER();
    if (!of || !is_whole(of) || !parameters || !*parameters)
        return CUDA_ERROR_INVALID_VALUE;
    split(to, groups, of->count, left, *parameters);
    return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(void **made, struct resource *list, unsigned int count)
{
    ENTER();
    if (!made || !list || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; i++)
        if (!is_whole(&list[i]))
            return CUDA_ERROR_INVALID_VALUE;
    *made = (void *)(uintptr_t)(MARK + count);
    return CUDA_SUCCESS;
}
