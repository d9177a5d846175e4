// SPDX-License-Identifier: MIT
#include "context.h"

#include "kept.h"
#include "remote.h"

/* A context that has ended, by any thread, has another number in its place, or none. */
static bool is_known(const struct known_context *own)
{
    return own && own->epoch == kept_epoch() && object_to_number(own->value) == own->number;
}

void context_forget(void)
{
    struct known_context *own = exchange_context();

    if (own)
        own->epoch = 0;
}

static void remember_current(uint64_t epoch, uint64_t value)
{
    struct known_context *own = exchange_context();

    if (own)
        *own = (struct known_context){epoch, value, object_to_number(value)};
}

static CUresult ask_current(uint64_t *value)
{
    const uint64_t words[SIGNATURE_ARGUMENTS] = {(uintptr_t)value};
    uint64_t epoch = kept_epoch();
    CUresult result;

    *value = 0;
    result = (CUresult)remote_call(CALL_cuCtxGetCurrent, words);
    if (result == CUDA_SUCCESS)
        remember_current(epoch, *value);
    return result;
}

/* Asks for it if it must. */
static CUresult find_current(uint64_t *value)
{
    const struct known_context *own = exchange_context();

    if (!is_known(own))
        return ask_current(value);
    *value = own->value;
    return CUDA_SUCCESS;
}

uint64_t context_number(void)
{
    uint64_t value;

    return find_current(&value) == CUDA_SUCCESS ? object_to_number(value) : 0;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult result = connect_usable();
    uint64_t value;

    if (result == CUDA_SUCCESS && !context)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = find_current(&value);
    if (result == CUDA_SUCCESS)
        *context = (CUcontext)(uintptr_t)value;
    return result;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSetCurrent(CUcontext context)
{
    const uint64_t words[SIGNATURE_ARGUMENTS] = {(uintptr_t)context};
    const struct known_context *own = exchange_context();
    uint64_t epoch = kept_epoch();
    CUresult result = connect_usable();

    if (result != CUDA_SUCCESS || (is_known(own) && own->value == (uintptr_t)context))
        return result;
    context_forget();
    result = (CUresult)remote_call(CALL_cuCtxSetCurrent, words);
    if (result == CUDA_SUCCESS)
        remember_current(epoch, (uintptr_t)context);
    return result;
}

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
    return (CUresult)remote_keep(CALL_cuCtxGetDevice_v2, words);
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
