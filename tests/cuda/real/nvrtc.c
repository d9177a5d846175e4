// SPDX-License-Identifier: MIT
/* Compiles kernels by NVRTC when it runs: nvrtc FILE. */
#include "driver.h"

#include <nvrtc.h>

int main(int argc, char **argv)
{
    const char *options[] = {"--gpu-architecture=compute_80"};
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    static char source[1 << 16];
    nvrtcProgram program;
    size_t size;
    char *image;

    if (!file || fread(source, 1, sizeof(source) - 1, file) == 0)
        return 2;
    if (nvrtcCreateProgram(&program, source, "kernels.cu", 0, NULL, NULL) ||
        nvrtcCompileProgram(program, 1, options) || nvrtcGetPTXSize(program, &size))
        return 3;
    image = malloc(size);
    if (nvrtcGetPTX(program, image))
        return 3;
    use(image);
    return 0;
}
