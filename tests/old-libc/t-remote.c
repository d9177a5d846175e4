/* SPDX-License-Identifier: MIT */
/*
 * For musl.t: a program with its own C library and our libcuda, which is argv[1]. It fills memory
 * of the GPU, and a thread of its own reads it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 65536u
#define VALUE 0x5eedf00du

static void *library;
static uint64_t memory;

typedef int (*Function)(uint64_t, uint64_t, uint64_t);

/* Whatever its arguments are: they go into registers. */
static void call(const char *name, uint64_t a, uint64_t b, uint64_t c)
{
    Function function = (Function)(uintptr_t)dlsym(library, name);
    int result = function ? function(a, b, c) : -1;

    if (result == 0)
        return;
    fprintf(stderr, "%s: %d\n", name, result);
    exit(1);
}

static void *read_back(void *context)
{
    static uint32_t words[COUNT];

    call("cuCtxSetCurrent", (uintptr_t)context, 0, 0);
    call("cuMemcpyDtoH_v2", (uintptr_t)words, memory, sizeof(words));
    for (unsigned int i = 0; i < COUNT; i++)
        if (words[i] != VALUE)
            return NULL;
    call("cuMemFree_v2", memory, 0, 0);
    return words;
}

int main(int argc, char **argv)
{
    uint64_t context = 0;
    pthread_t thread;
    void *right;

    library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    call("cuInit", 0, 0, 0);
    call("cuDevicePrimaryCtxRetain", (uintptr_t)&context, 0, 0);
    call("cuCtxSetCurrent", context, 0, 0);
    call("cuMemAlloc_v2", (uintptr_t)&memory, COUNT * sizeof(uint32_t), 0);
    call("cuMemsetD32_v2", memory, VALUE, COUNT);
    if (pthread_create(&thread, NULL, read_back, (void *)(uintptr_t)context) ||
        pthread_join(thread, &right))
        return 3;
    puts(right ? "right" : "wrong");
    return right ? 0 : 4;
}
