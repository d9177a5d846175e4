// SPDX-License-Identifier: MIT
#include "client.h"

#include <stdint.h>

#define COUNT 4096u

/* A copy there, a kernel in each way that it can be launched, a copy back. */
void check_launch_ways(void)
{
    static float x[COUNT], z[COUNT];
    unsigned int n = COUNT - 3, seven = 7;
    float a = 0.5f;
    CUdeviceptr to, from, scale;
    void *parameters[] = {&to, &from, &n, &a};
    CUlaunchConfig config = {COUNT / 256, 1, 1, 256, 1, 1, 0, NULL, NULL, 0};
    struct {
        CUdeviceptr to, from;
        unsigned int n;
        float a;
    } packed;
    size_t bytes = sizeof(packed);
    void *extra[] = {(void *)1, &packed, (void *)2, &bytes, NULL};
    CUmodule module;
    CUfunction axpy;

    begin_context();
    axpy = load_function(&module, "axpy");
    to = packed.to = allocate_device(sizeof(z));
    from = packed.from = allocate_device(sizeof(x));
    packed.n = n;
    packed.a = a;
    for (unsigned int i = 0; i < COUNT; i++)
        x[i] = (float)i;
    ok(cuModuleGetGlobal_v2(&scale, &bytes, module, "scale"));
    must(bytes == 4 && read_word(scale) == 3);
    bytes = sizeof(packed);
    ok(cuMemcpyHtoD_v2(scale, &seven, sizeof(seven)));
    ok(cuMemcpyHtoD_v2(from, x, sizeof(x)));
    for (unsigned int way = 0; way < 4; way++) {
        ok(cuMemsetD8_v2(to, 0, sizeof(z)));
        if (way == 0)
            ok(cuLaunchKernel(axpy, COUNT / 256, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
        else if (way == 1)
            ok(cuLaunchKernel(axpy, COUNT / 256, 1, 1, 256, 1, 1, 0, NULL, NULL, extra));
        else if (way == 2)
            ok(cuLaunchKernelEx(&config, axpy, parameters, NULL));
        else
            ok(cuLaunchCooperativeKernel(axpy, COUNT / 256, 1, 1, 256, 1, 1, 0, NULL, parameters));
        ok(cuMemcpyDtoH_v2(z, to, sizeof(z)));
        for (unsigned int i = 0; i < COUNT; i++)
            must(z[i] == (i < n ? x[i] * 0.5f + 7 : 0));
    }
    ok(cuModuleUnload(module));
    is(cuLaunchKernel(axpy, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL),
       CUDA_ERROR_INVALID_HANDLE);
}
