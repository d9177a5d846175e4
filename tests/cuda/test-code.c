// SPDX-License-Identifier: MIT
/* Code and its variables take memory of the card, which is charged when they are loaded. */
#include "kit.h"

#define LIMIT (1000 * MIB)

/* Images, as the fake driver knows them. */
#define FITS     "104857600"
#define TOO_MUCH "4294967296"

static void in_slice(void (*program)(void))
{
    kit_open(LIMIT);
    kit_run(program);
    kit_close();
}

static void both(uint64_t bytes)
{
    kit_charged(bytes);
    g_assert_cmpuint(kit_on_card(), ==, bytes);
}

static void modules(void)
{
    CUmodule file, data, options, fat, never = NULL;

    kit_context();
    ok(cuModuleLoad(&file, FITS));
    both(100 * MIB);
    ok(cuModuleLoadData(&data, FITS));
    ok(cuModuleLoadDataEx(&options, FITS, 0, NULL, NULL));
    ok(cuModuleLoadFatBinary(&fat, FITS));
    both(400 * MIB);
    full(cuModuleLoad(&never, TOO_MUCH));
    full(cuModuleLoadData(&never, TOO_MUCH));
    full(cuModuleLoadDataEx(&never, TOO_MUCH, 0, NULL, NULL));
    full(cuModuleLoadFatBinary(&never, TOO_MUCH));
    g_assert_null(never);
    both(400 * MIB);
    ok(cuModuleUnload(file));
    both(300 * MIB);
}

static void test_modules(void)
{
    in_slice(modules);
}

static void libraries(void)
{
    CUlibrary data, file, large;
    CUdeviceptr at;
    CUmodule module;
    size_t bytes;

    kit_context();
    ok(cuLibraryLoadData(&data, FITS, NULL, NULL, 0, NULL, NULL, 0));
    ok(cuLibraryLoadFromFile(&file, FITS, NULL, NULL, 0, NULL, NULL, 0));
    ok(cuLibraryLoadData(&large, TOO_MUCH, NULL, NULL, 0, NULL, NULL, 0));
    both(0);
    ok(cuLibraryGetModule(&module, data));
    both(100 * MIB);
    ok(cuLibraryGetGlobal(&at, &bytes, file, "x"));
    both(200 * MIB);
    full(cuLibraryGetGlobal(&at, &bytes, large, "x"));
    full(cuLibraryGetModule(&module, large));
    ok(cuLibraryUnload(large));
    ok(cuLibraryUnload(data));
    both(100 * MIB);
}

static void test_libraries(void)
{
    in_slice(libraries);
}

static void libraries_at_once(void)
{
    CUlibrary data, file, never = NULL;

    kit_context();
    ok(cuLibraryLoadData(&data, FITS, NULL, NULL, 0, NULL, NULL, 0));
    both(100 * MIB);
    ok(cuLibraryLoadFromFile(&file, FITS, NULL, NULL, 0, NULL, NULL, 0));
    both(200 * MIB);
    full(cuLibraryLoadData(&never, TOO_MUCH, NULL, NULL, 0, NULL, NULL, 0));
    full(cuLibraryLoadFromFile(&never, TOO_MUCH, NULL, NULL, 0, NULL, NULL, 0));
    g_assert_null(never);
    both(200 * MIB);
}

static void test_libraries_at_once(void)
{
    g_setenv("CUDA_MODULE_LOADING", "EAGER", TRUE);
    in_slice(libraries_at_once);
    g_unsetenv("CUDA_MODULE_LOADING");
}

/* What pools keep unused makes room for code. */
static void room(void)
{
    CUdeviceptr dptr;
    CUmodule module;

    kit_context();
    ok(cuMemAllocAsync(&dptr, 950 * MIB, NULL));
    ok(cuMemFreeAsync(dptr, NULL));
    ok(cuModuleLoad(&module, FITS));
    both(100 * MIB);
}

static void test_room(void)
{
    in_slice(room);
}

/* A function that is loaded when it is needed. */
static void lazily(void)
{
    CUfunction function;
    CUdeviceptr dptr;
    CUmodule module;

    kit_context();
    ok(cuMemAlloc_v2(&dptr, 100 * MIB));
    ok(cuModuleLoadData(&module, "0"));
    ok(cuModuleGetFunction(&function, module, "524288000"));
    /* At the limit it is found at once. */
    full(cuMemAlloc_v2(&dptr, 950 * MIB));
    both(600 * MIB);
    ok(cuModuleUnload(module));
    both(100 * MIB);
    /* Else at some later allocation. */
    ok(cuModuleLoadData(&module, "0"));
    ok(cuModuleGetFunction(&function, module, "524288000"));
    g_usleep(1100 * 1000);
    full(cuMemAlloc_v2(&dptr, 450 * MIB));
    both(600 * MIB);
}

static void test_lazily(void)
{
    in_slice(lazily);
}

/*
 * Code that is loaded when it is launched takes memory beyond the limit. It is there, so it counts:
 * nothing is given out before as much is free again.
 */
static void beyond(void)
{
    CUdeviceptr most, more;
    CUfunction function;
    CUmodule module;

    kit_context();
    ok(cuMemAlloc_v2(&most, 990 * MIB));
    ok(cuMemAlloc_v2(&more, 10 * MIB));
    ok(cuModuleLoadData(&module, "0"));
    ok(cuModuleGetFunction(&function, module, "524288000"));
    full(cuMemAlloc_v2(&more, 300 * MIB));
    both(1500 * MIB);
    /* 490 MiB are too much still. */
    ok(cuMemFree_v2(more));
    full(cuMemAlloc_v2(&more, 10 * MIB));
    ok(cuMemFree_v2(most));
    ok(cuMemAlloc_v2(&more, 10 * MIB));
    both(510 * MIB);
}

static void test_beyond(void)
{
    in_slice(beyond);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/code/modules", test_modules);
    g_test_add_func("/code/libraries", test_libraries);
    g_test_add_func("/code/libraries-at-once", test_libraries_at_once);
    g_test_add_func("/code/room", test_room);
    g_test_add_func("/code/lazily", test_lazily);
    g_test_add_func("/code/beyond", test_beyond);
    return g_test_run();
}
