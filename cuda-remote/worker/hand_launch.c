// SPDX-License-Identifier: MIT
/*
 * Launches. The parameters come as they lie in the kernel's parameter space, and go to the driver
 * so. Only cooperative launches take a pointer to each; where each lies is asked of the driver.
 */
#include "hand.h"
#include "worker.h"

#include <string.h>

#include "numbers.h"

enum { EXTRA_END = 0, EXTRA_BUFFER = 1, EXTRA_SIZE = 2 };
enum { ATTRIBUTE_EVENT = 7, ATTRIBUTE_COMPLETION_EVENT = 12, ATTRIBUTE_UPDATABLE = 13 };

/* A kernel serves wherever a function is launched. */
bool launch_function(uint64_t number, void **real, bool *is_kernel)
{
    *is_kernel = object_type(number) == OBJECT_CUkernel;
    return object_find(*is_kernel ? OBJECT_CUkernel : OBJECT_CUfunction, number, real) && *real;
}

CUresult launch_parameter(bool is_kernel, void *function, size_t at, size_t *offset, size_t *bytes)
{
    CUresult (*get)(void *, size_t, size_t *, size_t *) =
        driver_function(is_kernel ? CALL_cuKernelGetParamInfo : CALL_cuFuncGetParamInfo);

    return get ? get(function, at, offset, bytes) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult hand_layout(struct request *request)
{
    const struct hand_object *head = (const void *)request->head;
    size_t offset, bytes;
    bool is_kernel;
    void *function;
    CUresult result;

    if (request->head_bytes < sizeof(*head))
        return CUDA_ERROR_INVALID_VALUE;
    if (!launch_function(head->object, &function, &is_kernel))
        return CUDA_ERROR_INVALID_HANDLE;
    for (;;) {
        struct hand_parameter *to;

        result = launch_parameter(is_kernel, function, request->extra, &offset, &bytes);
        /* Behind the last one. */
        if (result == CUDA_ERROR_INVALID_VALUE)
            return CUDA_SUCCESS;
        if (result != CUDA_SUCCESS || request->extra == HAND_PARAMETERS_MOST)
            return result != CUDA_SUCCESS ? result : CUDA_ERROR_NOT_SUPPORTED;
        to = request_answer(request, sizeof(*to));
        if (!to)
            return CUDA_ERROR_INVALID_VALUE;
        *to = (struct hand_parameter){(uint32_t)offset, (uint32_t)bytes};
        request->extra++;
    }
}

struct launch {
    const struct hand_launch *head;
    void *function, *stream;
    const uint8_t *parameters;
    size_t bytes;
    struct hand_attribute *attributes;
    bool is_kernel;
};

static CUresult find_events(struct launch *launch)
{
    for (uint32_t i = 0; i < launch->head->attributes; i++) {
        struct hand_attribute *attribute = &launch->attributes[i];
        void *event;

        if (attribute->id == ATTRIBUTE_UPDATABLE)
            return CUDA_ERROR_NOT_SUPPORTED;
        if (attribute->id != ATTRIBUTE_EVENT && attribute->id != ATTRIBUTE_COMPLETION_EVENT)
            continue;
        if (!object_find(OBJECT_CUevent, attribute->value[0], &event))
            return CUDA_ERROR_INVALID_HANDLE;
        attribute->value[0] = (uintptr_t)event;
    }
    return CUDA_SUCCESS;
}

static CUresult take_launch(struct request *request, struct launch *launch)
{
    size_t at = request->flags & RECORD_BULK ? 0 : sizeof(*launch->head);

    launch->head = (const void *)request->head;
    if (request->head_bytes < sizeof(*launch->head) ||
        launch->head->attributes > HAND_ATTRIBUTES_MOST ||
        launch->head->bytes > HAND_PARAMETER_BYTES) {
        request->is_broken = true;
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (launch->head->attributes)
        launch->attributes = (void *)request_part(
            request, &at, launch->head->attributes * sizeof(*launch->attributes));
    launch->parameters = request_part(request, &at, launch->head->bytes);
    if ((launch->head->attributes && !launch->attributes) || !launch->parameters)
        return CUDA_ERROR_OUT_OF_MEMORY;
    launch->bytes = launch->head->bytes;
    if (!launch_function(launch->head->function, &launch->function, &launch->is_kernel) ||
        !object_find(OBJECT_CUstream, launch->head->stream, &launch->stream))
        return CUDA_ERROR_INVALID_HANDLE;
    return find_events(launch);
}

static CUresult launch_cooperative(struct request *request, struct launch *launch)
{
    CUresult (*call)(void *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                     unsigned int, unsigned int, void *, void **) =
        driver_function(request->number);
    const struct hand_launch *head = launch->head;
    void **pointers =
        scratch_take(request->scratch, (HAND_PARAMETERS_MOST + 1) * sizeof(*pointers));
    /* No parameter ends behind it, whatever was sent. */
    uint8_t *all = scratch_take_zeros(request->scratch, 2 * HAND_PARAMETER_BYTES);
    size_t offset, bytes, count = 0;

    if (!call || !pointers || !all)
        return CUDA_ERROR_NOT_SUPPORTED;
    memcpy(all, launch->parameters, launch->bytes);
    while (count < HAND_PARAMETERS_MOST &&
           launch_parameter(launch->is_kernel, launch->function, count, &offset, &bytes) ==
               CUDA_SUCCESS) {
        if (offset > HAND_PARAMETER_BYTES || bytes > HAND_PARAMETER_BYTES)
            return CUDA_ERROR_NOT_SUPPORTED;
        pointers[count++] = all + offset;
    }
    return call(launch->function, head->grid[0], head->grid[1], head->grid[2], head->block[0],
                head->block[1], head->block[2], head->shared_bytes, launch->stream, pointers);
}

static CUlaunchConfig config_of(const struct launch *launch)
{
    const struct hand_launch *head = launch->head;

    return (CUlaunchConfig){
        .gridDimX = head->grid[0],
        .gridDimY = head->grid[1],
        .gridDimZ = head->grid[2],
        .blockDimX = head->block[0],
        .blockDimY = head->block[1],
        .blockDimZ = head->block[2],
        .sharedMemBytes = head->shared_bytes,
        .hStream = launch->stream,
        .attrs = (CUlaunchAttribute *)launch->attributes,
        .numAttrs = head->attributes,
    };
}

/* How much of the GPU such a launch would have. */
CUresult hand_occupancy(struct request *request)
{
    CUresult (*get)(int *, void *, const CUlaunchConfig *) = driver_function(request->number);
    struct launch launch = {0};
    CUresult result = take_launch(request, &launch);
    CUlaunchConfig config;
    int is = 0;

    if (result != CUDA_SUCCESS)
        return result;
    config = config_of(&launch);
    result = get ? get(&is, launch.function, &config) : CUDA_ERROR_NOT_SUPPORTED;
    request->extra = (uint32_t)is;
    return result;
}

CUresult hand_launch(struct request *request)
{
    CUresult (*call)(void *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                     unsigned int, unsigned int, void *, void **, void **) =
        driver_function(request->number);
    CUresult (*by_config)(const CUlaunchConfig *, void *, void **, void **) =
        driver_function(request->number);
    struct launch launch = {0};
    CUlaunchConfig config;
    CUresult result = take_launch(request, &launch);
    const struct hand_launch *head = launch.head;
    void *extra[] = {(void *)EXTRA_BUFFER, (void *)launch.parameters, (void *)EXTRA_SIZE,
                     &launch.bytes, (void *)EXTRA_END};

    if (result != CUDA_SUCCESS)
        return result;
    if (!call)
        return CUDA_ERROR_NOT_SUPPORTED;
    switch (request->number) {
    case CALL_cuLaunchKernelEx:
    case CALL_cuLaunchKernelEx_ptsz:
        config = config_of(&launch);
        return by_config(&config, launch.function, NULL, extra);
    case CALL_cuLaunchCooperativeKernel:
    case CALL_cuLaunchCooperativeKernel_ptsz:
        return launch_cooperative(request, &launch);
    }
    return call(launch.function, head->grid[0], head->grid[1], head->grid[2], head->block[0],
                head->block[1], head->block[2], head->shared_bytes, launch.stream, NULL, extra);
}
