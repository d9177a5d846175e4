// SPDX-License-Identifier: MIT
/*
 * A program in a container: linked with libcuda.so.1, which the container's own loader finds or
 * does not. Prints how much memory it is told that the GPU has, and how many pieces of 8 MiB it
 * gets of that. With CLIENT_STAYS it keeps them until it is killed; if that is "calls", it calls
 * CUDA all the time, and prints a dot for each call.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cuInit(unsigned int flags);
int cuCtxCreate_v2(void **context, unsigned int flags, int device);
int cuMemAlloc_v2(uint64_t *at, size_t bytes);
int cuMemGetInfo_v2(size_t *available, size_t *total);

#define MIB  (1u << 20)
#define MOST 64

int main(void)
{
    static const char *const names[] = {"libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1",
                                        "libnvidia-ml.so"};
    size_t available, total;
    unsigned int pieces = 0;
    const char *stays = getenv("CLIENT_STAYS");
    uint64_t at;
    void *context;

    for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!dlopen(names[i], RTLD_NOW))
            printf("%s\n", dlerror());
    /* Whatever name it has, it is the library that the program is linked with. */
    if (dlsym(dlopen(names[1], RTLD_NOW), "cuInit") != (void *)cuInit)
        printf("%s is another library\n", names[1]);
    if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuMemGetInfo_v2(&available, &total))
        return 2;
    while (pieces < MOST && cuMemAlloc_v2(&at, 8 * MIB) == 0)
        pieces++;
    printf("%zu MiB, %u pieces\n", total / MIB, pieces);
    fflush(stdout);
    while (stays && !strcmp(stays, "calls")) {
        if (cuMemGetInfo_v2(&available, &total))
            return 3;
        write(STDOUT_FILENO, ".", 1);
        usleep(10000);
    }
    if (stays && *stays)
        pause();
    return 0;
}
