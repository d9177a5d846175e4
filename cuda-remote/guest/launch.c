// SPDX-License-Identifier: MIT
/* Launches: the parameters are packed as they lie in the kernel's parameter space. Where each lies
 * is asked once for each function. */
#include "remote.h"

#include <stdlib.h>
#include <string.h>

enum { EXTRA_END = 0, EXTRA_BUFFER = 1, EXTRA_SIZE = 2 };
enum { ATTRIBUTE_EVENT = 7, ATTRIBUTE_COMPLETION_EVENT = 12 };

static struct layout *ask_layout(uint64_t function)
{
    const struct hand_object head = {.object = function};
    struct layout *layout =
        calloc(1, sizeof(*layout) + HAND_PARAMETERS_MOST * sizeof(layout->parameters[0]));
    struct exchange ask = {.number = HAND_LAYOUT, .head = &head, .head_bytes = sizeof(head)};

    if (!layout)
        return NULL;
    /* An answer has as many parts as there are parameters. */
    exchange_out(&ask, layout->parameters, HAND_PARAMETERS_MOST * sizeof(layout->parameters[0]));
    ask.is_short = true;
    if (exchange_run(&ask) != CUDA_SUCCESS) {
        free(layout);
        return NULL;
    }
    layout->count = (uint32_t)ask.extra;
    for (uint32_t i = 0; i < layout->count; i++) {
        uint32_t end = layout->parameters[i].offset + layout->parameters[i].bytes;

        layout->bytes = end > layout->bytes ? end : layout->bytes;
    }
    return realloc(layout, sizeof(*layout) + layout->count * sizeof(layout->parameters[0]));
}

struct layout *launch_layout(CUfunction function, uint64_t *number)
{
    struct layout *layout = object_kept((uintptr_t)function, number);

    if (layout)
        return layout;
    layout = ask_layout(*number);
    return layout ? object_keep((uintptr_t)function, *number, layout) : NULL;
}

/* What the program has packed itself. */
static CUresult pack_extra(void **extra, const void **at, size_t *bytes)
{
    *at = NULL;
    for (; extra && *extra != (void *)EXTRA_END; extra += 2) {
        if (*extra == (void *)EXTRA_BUFFER)
            *at = extra[1];
        else if (*extra == (void *)EXTRA_SIZE)
            *bytes = *(const size_t *)extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    return *at || !*bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* In @buffer, or where the program has packed them. */
static CUresult pack_parameters(const struct layout *layout, void **parameters, void **extra,
                                uint8_t *buffer, const void **at, size_t *bytes)
{
    *bytes = 0;
    *at = buffer;
    if (extra)
        return parameters ? CUDA_ERROR_INVALID_VALUE : pack_extra(extra, at, bytes);
    if (layout->bytes > HAND_PARAMETER_BYTES || (layout->count && !parameters))
        return CUDA_ERROR_INVALID_VALUE;
    memset(buffer, 0, layout->bytes);
    for (uint32_t i = 0; i < layout->count; i++)
        memcpy(buffer + layout->parameters[i].offset, parameters[i], layout->parameters[i].bytes);
    *bytes = layout->bytes;
    return CUDA_SUCCESS;
}

CUresult launch_pack(CUfunction function, void **parameters, void **extra,
                     struct launch_parameters *to)
{
    CUresult result;

    to->layout = launch_layout(function, &to->function);
    result = to->layout ? CUDA_SUCCESS : connect_usable();
    if (!to->layout)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_HANDLE : result;
    result = pack_parameters(to->layout, parameters, extra, to->buffer, &to->at, &to->bytes);
    return result == CUDA_SUCCESS && to->bytes > HAND_PARAMETER_BYTES ? CUDA_ERROR_INVALID_VALUE
                                                                      : result;
}

/* What the driver may refuse a launch for, in 64 bits. Never 0. */
static uint64_t shape_of(const struct hand_launch *head, size_t bytes)
{
    uint64_t block = ((uint64_t)head->block[0] << 32 | head->block[1]) * 0x9e3779b97f4a7c15ull;
    uint64_t grid = ((uint64_t)head->grid[1] << 32 | head->grid[2]) * 0xc2b2ae3d27d4eb4full;
    uint64_t rest = ((uint64_t)head->shared_bytes << 32 | (uint32_t)bytes << 11 | head->block[2]) *
                    0x165667b19e3779f9ull;

    return (block + grid + rest + !head->grid[0]) | 1;
}

/*
 * With the program's arguments; @head has the shape. The first launch of each shape is waited for,
 * so that an error of it is that call's; its like are posted.
 */
static CUresult send_launch(unsigned int number, struct hand_launch *head, CUfunction function,
                            CUstream stream, void **parameters, void **extra,
                            const struct hand_attribute *attributes)
{
    struct launch_parameters packed;
    CUresult result = launch_pack(function, parameters, extra, &packed);
    struct exchange launch_of;
    uint64_t shape;

    if (result != CUDA_SUCCESS)
        return result;
    exchange_begin(&launch_of, number, head, sizeof(*head));
    head->function = packed.function;
    head->stream = object_to_number((uintptr_t)stream);
    head->bytes = (uint32_t)packed.bytes;
    if (head->attributes)
        exchange_in(&launch_of, attributes, head->attributes * sizeof(*attributes));
    exchange_in(&launch_of, packed.at, packed.bytes);
    shape = shape_of(head, packed.bytes);
    launch_of.is_posted = !head->attributes && packed.layout->shape == shape &&
                          (head->stream <= 2 || object_type(head->stream) == OBJECT_CUstream);
    result = exchange_run(&launch_of);
    if (!launch_of.is_posted && !head->attributes)
        packed.layout->shape = result == CUDA_SUCCESS ? shape : 0;
    return result;
}

#define SHAPE                                                                                      \
    CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,              \
        unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **parameters

#define HEAD {.grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared_bytes = shared}

#define LAUNCH_KERNEL(name)                                                                        \
    EXPORT CUresult name(SHAPE, void **extra);                                                     \
    CUresult name(SHAPE, void **extra)                                                             \
    {                                                                                              \
        struct hand_launch head = HEAD;                                                            \
                                                                                                   \
        return send_launch(CALL_##name, &head, f, stream, parameters, extra, NULL);                \
    }
LAUNCH_KERNEL(cuLaunchKernel)
LAUNCH_KERNEL(cuLaunchKernel_ptsz)

#define LAUNCH_COOPERATIVE(name)                                                                   \
    EXPORT CUresult name(SHAPE);                                                                   \
    CUresult name(SHAPE)                                                                           \
    {                                                                                              \
        struct hand_launch head = HEAD;                                                            \
                                                                                                   \
        return send_launch(CALL_##name, &head, f, stream, parameters, NULL, NULL);                 \
    }
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz)

/* As the driver lays it out. */
typedef struct {
    CUfunction function;
    unsigned int grid[3], block[3], shared_bytes;
    CUstream stream;
    void **parameters;
} MultiDeviceLaunch;

/* A launch for each device: a program has one. */
EXPORT CUresult cuLaunchCooperativeKernelMultiDevice(MultiDeviceLaunch *list, unsigned int count,
                                                     unsigned int flags);
CUresult cuLaunchCooperativeKernelMultiDevice(MultiDeviceLaunch *list, unsigned int count,
                                              unsigned int flags)
{
    if (!list || count != 1 || flags > 3)
        return CUDA_ERROR_INVALID_VALUE;
    return cuLaunchCooperativeKernel(list->function, list->grid[0], list->grid[1], list->grid[2],
                                     list->block[0], list->block[1], list->block[2],
                                     list->shared_bytes, list->stream, list->parameters);
}

/* The head of a launch and its attributes, in the worker's numbers. */
static CUresult read_config(const CUlaunchConfig *config, struct hand_launch *head,
                            struct hand_attribute *attributes)
{
    if (!config || config->numAttrs > HAND_ATTRIBUTES_MOST || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    *head = (struct hand_launch){
        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
        .shared_bytes = config->sharedMemBytes,
        .attributes = config->numAttrs,
    };
    if (head->attributes)
        memcpy(attributes, config->attrs, head->attributes * sizeof(attributes[0]));
    for (uint32_t i = 0; i < head->attributes; i++)
        if (attributes[i].id == ATTRIBUTE_EVENT || attributes[i].id == ATTRIBUTE_COMPLETION_EVENT)
            attributes[i].value[0] = object_to_number(attributes[i].value[0]);
    return CUDA_SUCCESS;
}

static CUresult launch_by_config(unsigned int number, const CUlaunchConfig *config, CUfunction f,
                                 void **parameters, void **extra)
{
    struct hand_attribute attributes[HAND_ATTRIBUTES_MOST];
    struct hand_launch head;
    CUresult result = read_config(config, &head, attributes);

    return result == CUDA_SUCCESS
               ? send_launch(number, &head, f, config->hStream, parameters, extra, attributes)
               : result;
}

/* What a launch of this form would be. */
static CUresult ask_occupancy(unsigned int number, int *to, CUfunction function,
                              const CUlaunchConfig *config)
{
    struct hand_attribute attributes[HAND_ATTRIBUTES_MOST];
    struct hand_launch head;
    struct exchange ask = {.number = number, .head = &head, .head_bytes = sizeof(head)};
    CUresult result = to ? read_config(config, &head, attributes) : CUDA_ERROR_INVALID_VALUE;

    if (result != CUDA_SUCCESS)
        return result;
    head.function = object_to_number((uintptr_t)function);
    head.stream = object_to_number((uintptr_t)config->hStream);
    exchange_in(&ask, attributes, head.attributes * sizeof(attributes[0]));
    result = exchange_run(&ask);
    if (result == CUDA_SUCCESS)
        *to = (int)ask.extra;
    return result;
}

#define OCCUPANCY(name)                                                                            \
    EXPORT CUresult name(int *to, CUfunction function, const CUlaunchConfig *config);              \
    CUresult name(int *to, CUfunction function, const CUlaunchConfig *config)                      \
    {                                                                                              \
        return ask_occupancy(CALL_##name, to, function, config);                                   \
    }
OCCUPANCY(cuOccupancyMaxActiveClusters)
OCCUPANCY(cuOccupancyMaxPotentialClusterSize)

#define LAUNCH_EX(name)                                                                            \
    EXPORT CUresult name(const CUlaunchConfig *config, CUfunction f, void **parameters,            \
                         void **extra);                                                            \
    CUresult name(const CUlaunchConfig *config, CUfunction f, void **parameters, void **extra)     \
    {                                                                                              \
        return launch_by_config(CALL_##name, config, f, parameters, extra);                        \
    }
LAUNCH_EX(cuLaunchKernelEx)
LAUNCH_EX(cuLaunchKernelEx_ptsz)
