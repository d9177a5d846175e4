// SPDX-License-Identifier: MIT
/*
 * Contexts. The driver takes some hundred MiB for each, which are charged after it has them. A
 * context that does not fit is destroyed again. All memory in a context ends with it.
 */
#include "chunks.h"
#include "contexts.h"
#include "join.h"
#include "later.h"
#include "meter.h"
#include "mover_hold.h"
#include "own.h"
#include "ranges.h"
#include "real.h"
#include "vmm.h"

static CUresult settle_created(CUresult result, CUcontext *pctx, CUdevice dev)
{
    bool made = result == CUDA_SUCCESS && !real_depth;
    struct gpu *gpu = made ? gpu_of(dev) : NULL;

    if (!gpu || own_settle(gpu)) {
        if (made)
            contexts_add(*pctx);
        return result;
    }
    DRIVER(cuCtxDestroy_v2, *pctx);
    own_settle(gpu);
    *pctx = NULL;
    return gpu_refusal(gpu);
}

CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return settle_created(DRIVER(cuCtxCreate, pctx, flags, dev), pctx, dev);
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return settle_created(DRIVER(cuCtxCreate_v2, pctx, flags, dev), pctx, dev);
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                        unsigned int flags, CUdevice dev)
{
    return settle_created(DRIVER(cuCtxCreate_v3, pctx, paramsArray, numParams, flags, dev), pctx,
                          dev);
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags,
                        CUdevice dev)
{
    return settle_created(DRIVER(cuCtxCreate_v4, pctx, ctxCreateParams, flags, dev), pctx, dev);
}

/* For OpenGL. */
CUresult cuGLCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return settle_created(DRIVER(cuGLCtxCreate, pctx, flags, dev), pctx, dev);
}

CUresult cuGLCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return settle_created(DRIVER(cuGLCtxCreate_v2, pctx, flags, dev), pctx, dev);
}

CUresult cuVDPAUCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev, unsigned int vdpDevice,
                          void *vdpGetProcAddress)
{
    return settle_created(DRIVER(cuVDPAUCtxCreate, pctx, flags, dev, vdpDevice, vdpGetProcAddress),
                          pctx, dev);
}

CUresult cuVDPAUCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev,
                             unsigned int vdpDevice, void *vdpGetProcAddress)
{
    return settle_created(
        DRIVER(cuVDPAUCtxCreate_v2, pctx, flags, dev, vdpDevice, vdpGetProcAddress), pctx, dev);
}

/* Programs retain it often, but memory is taken only if it was not active. */
static bool is_active(CUdevice dev)
{
    unsigned int flags;
    int active = 0;

    return DRIVER(cuDevicePrimaryCtxGetState, dev, &flags, &active) == CUDA_SUCCESS && active;
}

/* NULL: nothing is locked. */
static struct gpu *lock_primary(CUdevice dev)
{
    struct gpu *gpu = real_depth ? NULL : gpu_of(dev);

    if (gpu)
        pthread_mutex_lock(&gpu->primary_lock);
    return gpu;
}

static void unlock_primary(struct gpu *gpu)
{
    if (gpu)
        pthread_mutex_unlock(&gpu->primary_lock);
}

static CUresult settle_retained(struct gpu *gpu, CUcontext *pctx, bool was_active)
{
    if ((was_active && gpu->primary == *pctx) || own_settle(gpu)) {
        gpu->primary = *pctx;
        return CUDA_SUCCESS;
    }
    DRIVER(cuDevicePrimaryCtxRelease_v2, gpu->device);
    own_settle(gpu);
    *pctx = NULL;
    return gpu_refusal(gpu);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct gpu *gpu = lock_primary(dev);
    bool was_active = gpu && is_active(dev);
    CUresult result = DRIVER(cuDevicePrimaryCtxRetain, pctx, dev);

    if (gpu && result == CUDA_SUCCESS)
        result = settle_retained(gpu, pctx, was_active);
    unlock_primary(gpu);
    return result;
}

/* It retains the primary context, and has queues of its own. */
CUresult cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev,
                          unsigned int flags)
{
    struct gpu *gpu = lock_primary(dev);
    CUresult result = DRIVER(cuGreenCtxCreate, phCtx, desc, dev, flags);

    if (gpu && result == CUDA_SUCCESS && !own_settle(gpu)) {
        DRIVER(cuGreenCtxDestroy, *phCtx);
        own_settle(gpu);
        *phCtx = NULL;
        result = gpu_refusal(gpu);
    }
    unlock_primary(gpu);
    return result;
}

static void give_all(struct ranges *ranges, CUcontext context)
{
    struct charge charge;

    while (ranges_take_of(ranges, context, &charge))
        charge_give(&charge);
}

static void settle_each(struct gpu *gpu, void *data)
{
    (void)data;
    own_settle(gpu);
}

/* All memory in it is free. */
static void forget_context(CUcontext context)
{
    if (context) {
        contexts_remove(context);
        chunks_context_ended(context);
        give_all(&ranges_pointers, context);
        give_all(&ranges_arrays, context);
        give_all(&ranges_externals, context);
        vmm_context_ended(context);
    }
}

/* @launched: what work was launched in; @context: what memory is of. */
static CUresult settle_destroyed(CUresult result, CUcontext launched, CUcontext context)
{
    if (real_depth)
        return result;
    later_take_back(launched, result == CUDA_SUCCESS);
    if (result == CUDA_SUCCESS)
        forget_context(context);
    mover_release_contexts();
    if (result == CUDA_SUCCESS)
        gpu_each(settle_each, NULL);
    return result;
}

static void end_work_of(struct gpu *gpu, void *context)
{
    meter_context_ends(gpu, context);
}

/* Its events are the driver's to end from now on. */
static void before_end_of(CUcontext context)
{
    if (real_depth)
        return;
    mover_hold_contexts();
    later_set_aside(context);
    if (context)
        gpu_each(end_work_of, context);
}

CUresult cuCtxDestroy(CUcontext ctx)
{
    before_end_of(ctx);
    return settle_destroyed(DRIVER(cuCtxDestroy, ctx), ctx, ctx);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
    before_end_of(ctx);
    return settle_destroyed(DRIVER(cuCtxDestroy_v2, ctx), ctx, ctx);
}

/* What is launched in it is of a context of its own; memory is the primary context's. */
CUresult cuGreenCtxDestroy(CUgreenCtx hCtx)
{
    CUcontext context = NULL;

    if (!real_depth && DRIVER(cuCtxFromGreenCtx, &context, hCtx) != CUDA_SUCCESS)
        context = NULL;
    before_end_of(context);
    return settle_destroyed(DRIVER(cuGreenCtxDestroy, hCtx), context, NULL);
}

/* The context may have other users. */
CUresult cuCtxDetach(CUcontext ctx)
{
    CUresult result;

    before_end_of(ctx);
    result = DRIVER(cuCtxDetach, ctx);
    if (result == CUDA_SUCCESS)
        contexts_remove_detached(ctx);
    return settle_destroyed(result, ctx, NULL);
}

/*
 * Only the last release ends the context, and only the driver knows which one that is. NULL: of a
 * GPU without a slice; its work may use memory of others.
 */
static struct gpu *before_release(CUdevice dev)
{
    struct gpu *gpu = lock_primary(dev);

    if (gpu && !gpu->primary)
        gpu->primary = contexts_find_primary(dev);
    if (!real_depth)
        mover_hold_contexts();
    if (!gpu)
        return NULL;
    meter_set_aside(gpu, gpu->primary);
    later_set_aside(gpu->primary);
    return gpu;
}

/* @all: a reset, which ends what is in the context, whoever else has it. */
static CUresult settle_released(struct gpu *gpu, CUresult result, bool all)
{
    bool is_over;

    if (!gpu && !real_depth)
        mover_release_contexts();
    if (!gpu)
        return result;
    is_over = !is_active(gpu->device);
    all &= result == CUDA_SUCCESS;
    meter_take_back(gpu, gpu->primary, is_over || all);
    later_take_back(gpu->primary, is_over || all);
    if (is_over && result == CUDA_SUCCESS) {
        forget_context(gpu->primary);
        gpu->primary = NULL;
    }
    mover_release_contexts();
    if (is_over && result == CUDA_SUCCESS)
        gpu_each(settle_each, NULL);
    unlock_primary(gpu);
    return result;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
    struct gpu *gpu = before_release(dev);

    return settle_released(gpu, DRIVER(cuDevicePrimaryCtxRelease, dev), false);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    struct gpu *gpu = before_release(dev);

    return settle_released(gpu, DRIVER(cuDevicePrimaryCtxRelease_v2, dev), false);
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
    struct gpu *gpu = before_release(dev);

    return settle_released(gpu, DRIVER(cuDevicePrimaryCtxReset, dev), true);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    struct gpu *gpu = before_release(dev);

    return settle_released(gpu, DRIVER(cuDevicePrimaryCtxReset_v2, dev), true);
}

/* Stacks and heaps of kernels can grow. */
CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    CUresult result = DRIVER(cuCtxSetLimit, limit, value);
    struct gpu *gpu = result == CUDA_SUCCESS && !real_depth ? gpu_current() : NULL;

    if (gpu)
        own_settle(gpu);
    return result;
}
