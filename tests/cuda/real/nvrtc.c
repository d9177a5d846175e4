// SPDX-License-Identifier: MIT
/* Compiles its kernel when it runs, by NVRTC. */
#include "driver.h"

#include <nvrtc.h>

static const char source[] =
    "extern \"C\" __global__ void add(float *z, const float *x, const float *y, int n)\n"
    "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) z[i] = x[i] + y[i]; }\n";

int main(void)
{
    const char *options[] = {"--gpu-architecture=compute_90"};
    nvrtcProgram program;
    size_t size;
    char *image;

    if (nvrtcCreateProgram(&program, source, "add.cu", 0, NULL, NULL) ||
        nvrtcCompileProgram(program, 1, options) || nvrtcGetPTXSize(program, &size))
        return 3;
    image = malloc(size);
    if (nvrtcGetPTX(program, image))
        return 3;
    use(image);
    return 0;
}
