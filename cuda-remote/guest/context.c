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
