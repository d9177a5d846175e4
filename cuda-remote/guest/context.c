// SPDX-License-Identifier: MIT
#include "remote.h"

CUresult cuCtxGetDevice(CUdevice *device);

/*
 * Programs that take each name with _v2 if there is one (Numba does) call this with the arguments
 * of the form before it. What they give as a context is none: they mean the current one.
 */
EXPORT CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context);
CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    const uint64_t words[SIGNATURE_ARGUMENTS] = {(uintptr_t)device, (uintptr_t)context};

    if (object_type(object_to_number((uintptr_t)context)) != OBJECT_CUcontext)
        return cuCtxGetDevice(device);
    return (CUresult)remote_call(CALL_cuCtxGetDevice_v2, words);
}

typedef struct {
    void *affinities;
    int affinities_count;
    void *graphics;
} ContextParameters;

CUresult cuCtxCreate_v2(CUcontext *made, unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v3(CUcontext *made, void *affinities, int count, unsigned int flags,
                        CUdevice device);

/* One that shares the GPU with a graphics API's queue would need that API in the worker. */
EXPORT CUresult cuCtxCreate_v4(CUcontext *made, const ContextParameters *of, unsigned int flags,
                               CUdevice device);
CUresult cuCtxCreate_v4(CUcontext *made, const ContextParameters *of, unsigned int flags,
                        CUdevice device)
{
    if (of && of->graphics)
        return (CUresult)remote_refuse("cuCtxCreate with a graphics API's data",
                                       "that API is not in the worker");
    if (of && of->affinities_count)
        return cuCtxCreate_v3(made, of->affinities, of->affinities_count, flags, device);
    return cuCtxCreate_v2(made, flags, device);
}
