// SPDX-License-Identifier: MIT
/*
 * t-turns MIB: a CUDA program that has so much GPU memory, and for each line of its input finds
 * that it has what it wrote there, and writes something else.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB   (1u << 20)
#define PIECE (16 * MIB)
#define MOST  64

static int (*init)(unsigned int flags);
static int (*create)(void **context, unsigned int flags, int device);
static int (*allocate)(uint64_t *at, size_t bytes);
static int (*copy_in)(uint64_t to, const void *from, size_t bytes);
static int (*copy_out)(void *to, uint64_t from, size_t bytes);

static uint32_t buffer[PIECE / sizeof(uint32_t)];
static uint64_t pieces[MOST];

static void must(int result, const char *what)
{
    if (!result)
        return;
    printf("%s: error %d\n", what, result);
    fflush(stdout);
    exit(1);
}

static void find_functions(void)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);

    must(!cuda, "libcuda.so.1");
    *(void **)&init = dlsym(cuda, "cuInit");
    *(void **)&create = dlsym(cuda, "cuCtxCreate_v2");
    *(void **)&allocate = dlsym(cuda, "cuMemAlloc_v2");
    *(void **)&copy_in = dlsym(cuda, "cuMemcpyHtoD_v2");
    *(void **)&copy_out = dlsym(cuda, "cuMemcpyDtoH_v2");
}

/* Different in each word, piece and round. */
static uint32_t word_of(uint32_t piece, uint32_t round, uint32_t number)
{
    return (number * 2654435761u) ^ (piece << 24) ^ (round << 16);
}

static void write_all(uint32_t count, uint32_t round)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < PIECE / sizeof(*buffer); k++)
            buffer[k] = word_of(i, round, k);
        must(copy_in(pieces[i], buffer, PIECE), "cuMemcpyHtoD");
    }
}

static void check_all(uint32_t count, uint32_t round)
{
    for (uint32_t i = 0; i < count; i++) {
        must(copy_out(buffer, pieces[i], PIECE), "cuMemcpyDtoH");
        for (uint32_t k = 0; k < PIECE / sizeof(*buffer); k++)
            must(buffer[k] != word_of(i, round, k), "wrong content");
    }
}

int main(int argc, char **argv)
{
    uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) * MIB / PIECE : 1;
    char line[16];
    void *context;

    find_functions();
    must(init(0), "cuInit");
    must(create(&context, 0, 0), "cuCtxCreate");
    for (uint32_t i = 0; i < count && i < MOST; i++)
        must(allocate(&pieces[i], PIECE), "cuMemAlloc");
    write_all(count, 0);
    for (uint32_t round = 0;; round++) {
        printf("round %u\n", round);
        fflush(stdout);
        if (!fgets(line, sizeof(line), stdin))
            return 0;
        check_all(count, round);
        write_all(count, round + 1);
    }
}
