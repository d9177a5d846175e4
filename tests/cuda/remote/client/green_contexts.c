// SPDX-License-Identifier: MIT
/* Contexts on a part of the GPU: what the driver hides in its structures is not the program's. */
#include "client.h"

#include <string.h>

struct resource {
    unsigned int type;
    uint8_t hidden[92];
    unsigned int count;
    uint8_t rest[36];
    struct resource *next;
};

struct parameters {
    void *affinities;
    int affinities_count;
    void *graphics;
};

typedef struct CUdevResourceDesc_st *Description;
typedef struct CUgreenCtx_st *GreenContext;

CUresult cuDeviceGetDevResource(CUdevice device, struct resource *to, unsigned int type);
CUresult cuCtxGetDevResource(CUcontext context, struct resource *to, unsigned int type);
CUresult cuGreenCtxGetDevResource(GreenContext context, struct resource *to, unsigned int type);
CUresult cuStreamGetDevResource(CUstream stream, struct resource *to, unsigned int type);
CUresult cuStreamGetDevResource_ptsz(CUstream stream, struct resource *to, unsigned int type);
CUresult cuDevSmResourceSplitByCount(struct resource *to, unsigned int *groups,
                                     const struct resource *of, struct resource *left,
                                     unsigned int flags, unsigned int least);
CUresult cuDevSmResourceSplit(struct resource *to, unsigned int groups, const struct resource *of,
                              struct resource *left, unsigned int flags, unsigned int *parameters);
CUresult cuDevResourceGenerateDesc(Description *made, struct resource *list, unsigned int count);
CUresult cuGreenCtxCreate(GreenContext *made, Description of, CUdevice device, unsigned int flags);
CUresult cuCtxFromGreenCtx(CUcontext *to, GreenContext of);
CUresult cuGreenCtxDestroy(GreenContext context);
CUresult cuCtxCreate_v4(CUcontext *made, const struct parameters *of, unsigned int flags,
                        CUdevice device);

/* 132 multiprocessors are two parts of 48, and 36. */
static void split_resource(struct resource *parts, struct resource *left)
{
    unsigned int groups = 2, parameters[2][16] = {{48}, {48}};
    struct resource all;

    ok(cuDeviceGetDevResource(0, &all, 1));
    must(all.type == 1 && all.count == 132 && !all.next && !all.hidden[91]);
    ok(cuDevSmResourceSplitByCount(NULL, &groups, &all, NULL, 0, 48));
    groups = 8;
    is(cuDevSmResourceSplitByCount(parts, &groups, &all, left, 0, 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuDevSmResourceSplitByCount(parts, &groups, &all, left, 0, 48));
    must(groups == 2 && parts[0].count == 48 && parts[1].count == 48 && left->count == 36);
    must(!parts[2].type);
    ok(cuDevSmResourceSplit(parts, 2, &all, left, 0, parameters[0]));
    must(parts[1].count == 48 && left->count == 36);
    all.hidden[4] = 200;
    groups = 2;
    is(cuDevSmResourceSplitByCount(parts, &groups, &all, NULL, 0, 48), CUDA_ERROR_INVALID_VALUE);
    all.hidden[4] = 0;
    is(cuDevSmResourceSplitByCount(parts, &groups, &all, NULL, 0, 48), CUDA_ERROR_INVALID_VALUE);
    ok(cuDeviceGetDevResource(0, &all, 1));
    all.next = &all;
    is(cuDevSmResourceSplitByCount(parts, &groups, &all, NULL, 0, 48), CUDA_ERROR_NOT_SUPPORTED);
}

static void compute_in_part(struct resource *parts)
{
    CUcontext current;
    CUdeviceptr at;
    GreenContext green;
    Description description;
    struct resource told;

    ok(cuDevResourceGenerateDesc(&description, parts, 2));
    ok(cuGreenCtxCreate(&green, description, 0, 1));
    is(cuGreenCtxCreate(&green, (Description)parts, 0, 1), CUDA_ERROR_INVALID_HANDLE);
    ok(cuGreenCtxGetDevResource(green, &told, 1));
    must(told.count == 132);
    ok(cuCtxFromGreenCtx(&current, green));
    ok(cuCtxGetDevResource(current, &told, 1));
    ok(cuCtxSetCurrent(current));
    at = allocate_device(4096);
    ok(cuMemsetD8_v2(at, 7, 4));
    must(read_word(at) == 0x07070707);
    ok(cuMemFree_v2(at));
    ok(cuGreenCtxDestroy(green));
    is(cuGreenCtxDestroy(green), CUDA_ERROR_INVALID_HANDLE);
}

void check_green_contexts(void)
{
    struct resource parts[8], left, told;
    struct parameters parameters = {.graphics = parts};
    CUcontext context;

    begin_context();
    split_resource(parts, &left);
    ok(cuStreamGetDevResource(NULL, &told, 1));
    ok(cuStreamGetDevResource_ptsz(NULL, &told, 1));
    is(cuStreamGetDevResource(NULL, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    compute_in_part(parts);
    ok(cuCtxCreate_v4(&context, NULL, 0, 0));
    is(cuCtxCreate_v4(&context, &parameters, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
    parameters.graphics = NULL;
    ok(cuCtxCreate_v4(&context, &parameters, 0, 0));
    ok(cuCtxDestroy_v2(context));
}
