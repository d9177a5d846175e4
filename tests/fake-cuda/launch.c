// SPDX-License-Identifier: MIT
/*
 * Launches. A function is a number: how many nanoseconds a launch of it takes, or one of fake.h's.
 */
#include "timing.h"

#include <string.h>

#include "ptx/content.h"

/* What is longer is an address that a test made up. */
#define MOST_NS  1000000000u
#define SHORT_NS 1000u

uint64_t fake_varying_ns;
CUresult (*fake_before_launch)(CUfunction function, CUstream stream);

struct model_op launch_operation(CUfunction f)
{
    uint64_t ns = f == FAKE_VARIES ? fake_varying_ns : (uintptr_t)f < MOST_NS ? (uintptr_t)f : 0;
    struct model_op op = {.engine = MODEL_COMPUTE, .kind = TIMING_WORK, .length_ns = (double)ns};

    if (f == FAKE_SPIN) {
        op.kind = TIMING_SPIN;
        op.length_ns = MODEL_ENDLESS;
    } else if (f == FAKE_RELEASE) {
        op.kind = TIMING_RELEASE;
        op.length_ns = SHORT_NS;
    } else if (f == FAKE_FAULTS || f == FAKE_ASSERTS) {
        op.kind = TIMING_FAULT;
        op.data[0] = f == FAKE_FAULTS ? FAKE_ILLEGAL_ADDRESS : FAKE_LAUNCH_FAILED;
        op.length_ns = SHORT_NS;
    }
    return op;
}

/* A kernel of PTX computes, a number only takes time. */
static CUresult launch(CUfunction f, const struct shape *shape, CUstream stream, bool per_thread,
                       void **parameters, void **extra)
{
    CUresult result = fake_before_launch ? fake_before_launch(f, stream) : CUDA_SUCCESS;
    struct effect *effect;
    struct model_op op;

    if (result != CUDA_SUCCESS)
        return result;
    op = launch_operation(f);
    effect = effect_of_launch(f, shape, parameters, extra, &result);
    if (result != CUDA_SUCCESS)
        return result;
    if (effect)
        op.length_ns = (double)effect_length_ns(effect);
    effect_begin(effect);
    result = timing_submit(stream, per_thread, &op);
    return effect_end(stream, per_thread, result);
}

CUresult fake_launch(CUfunction f, CUstream stream, bool per_thread)
{
    const struct model_op op = launch_operation(f);

    return timing_submit(stream, per_thread, &op);
}

#define GRID                                                                                       \
    unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,           \
        unsigned int bz, unsigned int shared, CUstream stream, void **parameters

#define SHAPE(cooperative) (&(struct shape){{gx, gy, gz}, {bx, by, bz}, shared, cooperative})

#define LAUNCH_KERNEL(name, per_thread)                                                            \
    CUresult name(CUfunction f, GRID, void **extra)                                                \
    {                                                                                              \
        const long given[FAKE_ARGUMENTS] = {                                                       \
            (long)f, gx, gy, gz, bx, by, bz, shared, (long)stream, (long)parameters, (long)extra}; \
                                                                                                   \
        ENTER();                                                                                   \
        memcpy(fake_arguments, given, sizeof(given));                                              \
        return launch(f, SHAPE(false), stream, per_thread, parameters, extra);                     \
    }
LAUNCH_KERNEL(cuLaunchKernel, false)
LAUNCH_KERNEL(cuLaunchKernel_ptsz, true)

#define LAUNCH_COOPERATIVE(name, per_thread)                                                       \
    CUresult name(CUfunction f, GRID)                                                              \
    {                                                                                              \
        const long given[FAKE_ARGUMENTS] = {(long)f, gx, gy,     gz,           bx,                 \
                                            by,      bz, shared, (long)stream, (long)parameters};  \
                                                                                                   \
        ENTER();                                                                                   \
        memcpy(fake_arguments, given, sizeof(given));                                              \
        return launch(f, SHAPE(true), stream, per_thread, parameters, NULL);                       \
    }
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel, false)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)

#define LAUNCH_EX(name, per_thread)                                                                \
    CUresult name(const CUlaunchConfig *config, CUfunction f, void **parameters, void **extra)     \
    {                                                                                              \
        const struct shape shape = {{config->gridDimX, config->gridDimY, config->gridDimZ},        \
                                    {config->blockDimX, config->blockDimY, config->blockDimZ},     \
                                    config->sharedMemBytes,                                        \
                                    false};                                                        \
                                                                                                   \
        ENTER();                                                                                   \
        return launch(f, &shape, config->hStream, per_thread, parameters, extra);                  \
    }
LAUNCH_EX(cuLaunchKernelEx, false)
LAUNCH_EX(cuLaunchKernelEx_ptsz, true)

CUresult cuLaunch(CUfunction f)
{
    ENTER();
    return fake_launch(f, NULL, false);
}

CUresult cuLaunchGrid(CUfunction f, int width, int height)
{
    ENTER();
    (void)width;
    (void)height;
    return fake_launch(f, NULL, false);
}

CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream)
{
    ENTER();
    (void)width;
    (void)height;
    return fake_launch(f, stream, false);
}
