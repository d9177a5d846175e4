// SPDX-License-Identifier: MIT
/* cuGetProcAddress as runtimes use it: forms by version, unknown names, functions that the driver
 * does not export. */
#include "kit.h"

#include <dlfcn.h>

#define LIMIT (64 * MIB)

static void *got(const char *symbol, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    void *function = NULL;

    ok(cuGetProcAddress_v2(symbol, &function, version, flags, &status));
    g_assert_cmpint(status, ==, CU_GET_PROC_ADDRESS_SUCCESS);
    g_assert_nonnull(function);
    return function;
}

static void forms(void)
{
    kit_context();
    g_assert_true(got("cuMemAlloc", 13020, 0) == (void *)cuMemAlloc_v2);
    g_assert_true(got("cuMemAlloc", 3010, 0) == (void *)cuMemAlloc);
    g_assert_true(got("cuCtxCreate", 4000, 0) == (void *)cuCtxCreate_v2);
    g_assert_true(got("cuCtxCreate", 11040, 0) == (void *)cuCtxCreate_v3);
    g_assert_true(got("cuCtxCreate", 13020, 0) == (void *)cuCtxCreate_v4);
    g_assert_true(got("cuMemAllocAsync", 12000, 0) == (void *)cuMemAllocAsync);
    g_assert_true(got("cuMemAllocAsync", 12000, 1) == (void *)cuMemAllocAsync);
    g_assert_true(got("cuMemAllocAsync", 12000, 2) == (void *)cuMemAllocAsync_ptsz);
    g_assert_true(got("cuGraphInstantiate", 11030, 0) == (void *)cuGraphInstantiate_v2);
    g_assert_true(got("cuGraphInstantiate", 12050, 2) == (void *)cuGraphInstantiate_v2);
    g_assert_true(got("cuMemAllocAsync", 13990, 3) == (void *)cuMemAllocAsync_ptsz);
    /* As NVIDIA's 550 and 555 were asked. */
    g_assert_true(got("cuLaunchKernelEx", 11060, 0) == (void *)cuLaunchKernelEx);
    g_assert_nonnull(got("cuEventElapsedTime", 2000, 0));
    g_assert_nonnull(got("cuOccupancyAvailableDynamicSMemPerBlock", 10020, 0));
    /* Asked of itself, it is ours, or all else would go past us. */
    g_assert_true(got("cuGetProcAddress", 12000, 0) == (void *)cuGetProcAddress_v2);
    g_assert_true(got("cuGetProcAddress", 11030, 0) == (void *)cuGetProcAddress);
    /* What passes is the driver's own, without a jump between. */
    g_assert_true(got("cuModuleGetFunction", 12000, 0) == kit_driver("cuModuleGetFunction"));
}

static void test_forms(void)
{
    kit_open(LIMIT);
    kit_run(forms);
    kit_close();
}

/* A driver may give out a function of another name. */
static void other_name(void)
{
    kit_context();
    g_assert_true(got("cuGraphInstantiate", 11030, 0) == (void *)cuGraphInstantiate_v2);
    g_assert_true(got("cuGraphInstantiate", 11040, 0) == (void *)cuGraphInstantiateWithFlags);
    g_assert_true(got("cuGraphInstantiate", 13020, 2) == (void *)cuGraphInstantiateWithFlags);
}

static void test_other_name(void)
{
    kit_open(LIMIT);
    g_setenv("FAKE_CUDA_INSTANTIATE", "flags", TRUE);
    kit_run(other_name);
    kit_close();
    g_unsetenv("FAKE_CUDA_INSTANTIATE");
}

/* What a version means is the driver's to say: the table is not asked where its answer is known. */
static void drivers_word(void)
{
    kit_context();
    g_assert_true(got("cuCtxCreate", 12080, 0) == (void *)cuCtxCreate_v3);
    g_assert_true(got("cuCtxCreate", 13000, 0) == (void *)cuCtxCreate_v4);
}

static void test_drivers_word(void)
{
    kit_open(LIMIT);
    g_setenv("FAKE_CUDA_LATER", "1", TRUE);
    kit_run(drivers_word);
    kit_close();
}

/* The second form of the function says so beside its result; the first one fails, and leaves what
 * it was given. */
static void not_there(const char *symbol, int version, CUdriverProcAddressQueryResult why)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    void *function = (void *)not_there;

    ok(cuGetProcAddress_v2(symbol, &function, version, 0, &status));
    g_assert_null(function);
    g_assert_cmpint(status, ==, why);
    function = (void *)not_there;
    ok(cuGetProcAddress_v2(symbol, &function, version, 0, NULL));
    g_assert_null(function);
    function = (void *)not_there;
    g_assert_cmpint(cuGetProcAddress(symbol, &function, version, 0), ==, CUDA_ERROR_NOT_FOUND);
    g_assert_true(function == (void *)not_there);
}

static void refused(const char *symbol, int version)
{
    not_there(symbol, version, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

static void unknown(void)
{
    void *function = (void *)unknown;

    kit_context();
    g_assert_true(got("cuNewThing", 13020, 0) == kit_driver("cuNewThing_v9"));
    refused("cuMemNewAlloc", 13020);
    refused("cuNobodysName", 13020);
    /* Exported, and never given out. */
    refused("cudbgGetAPI", 13020);
    refused("cuMemGetAttribute", 13020);
    not_there("cuMemAllocAsync", 11010, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    g_assert_cmpint(cuGetProcAddress_v2(NULL, &function, 13020, 0, NULL), ==,
                    CUDA_ERROR_INVALID_VALUE);
    g_assert_cmpint(cuGetProcAddress_v2("cuMemAlloc", &function, 13020, 4, NULL), ==,
                    CUDA_ERROR_INVALID_VALUE);
    g_assert_cmpint(cuGetProcAddress("cuMemAlloc", NULL, 13020, 0), ==, CUDA_ERROR_INVALID_VALUE);
}

static void test_unknown(void)
{
    kit_open(LIMIT);
    kit_run(unknown);
    kit_close();
}

/*
 * Forms of CUDA 14, which have other arguments than any that we know. They are treated as unknown
 * names are; and whoever hands out entry points would hand out the driver's.
 */
static void later_forms(void)
{
    kit_context();
    refused("cuMemAlloc", 14000);
    refused("cuGetProcAddress", 14000);
    g_assert_true(got("cuMemcpyBatchAsync", 14000, 0) == kit_driver("cuMemcpyBatchAsync_v9"));
    /* Those before are ours. */
    g_assert_true(got("cuMemAlloc", 13020, 0) == (void *)cuMemAlloc_v2);
    g_assert_true(got("cuMemcpyBatchAsync", 13020, 0) == (void *)cuMemcpyBatchAsync_v2);
    g_assert_true(got("cuMemcpyBatchAsync", 12080, 0) == (void *)cuMemcpyBatchAsync);
}

static void test_later_forms(void)
{
    kit_open(LIMIT);
    kit_run(later_forms);
    kit_close();
}

static void later_forms_ungoverned(void)
{
    kit_context();
    g_assert_true(got("cuMemAlloc", 14000, 0) == kit_driver("cuMemAlloc_v9"));
}

static void test_later_forms_ungoverned(void)
{
    kit_open(0);
    kit_run(later_forms_ungoverned);
    kit_close();
}

/* Where there is no slice to go past, a new function that takes memory is the driver's. */
static void unknown_ungoverned(void)
{
    kit_context();
    g_assert_true(got("cuMemNewAlloc", 13020, 0) == kit_driver("cuMemNewAlloc"));
}

static void test_unknown_ungoverned(void)
{
    kit_open(0);
    kit_run(unknown_ungoverned);
    kit_close();
}

/* The driver gives out a function that it doesn't export: what it is, its version says. */
static void unexported(void)
{
    CUresult (*alloc)(CUdeviceptr *, size_t) = NULL;
    CUdeviceptr dptr;

    kit_context();
    g_assert_true(got("cuMemAlloc", 13020, 0) == (void *)cuMemAlloc_v2);
    *(void **)&alloc = got("cuMemAlloc", 13020, 0);
    ok(alloc(&dptr, 4 * MIB));
    kit_charged(4 * MIB);
}

static void test_unexported(void)
{
    kit_open(LIMIT);
    g_setenv("FAKE_CUDA_UNEXPORTED", "1", TRUE);
    kit_run(unexported);
    kit_close();
}

/* By name: what only the driver has is found through the door, and a name that this driver hasn't
 * got is no trap. */
static void by_name(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

    g_assert_nonnull(library);
    g_assert_true(dlsym(library, "cuNewThing_v9") == kit_driver("cuNewThing_v9"));
    g_assert_true(dlsym(library, "cuMemAlloc_v2") == (void *)cuMemAlloc_v2);
    g_assert_true(dlsym(library, "cuMemAlloc_v2") != kit_driver("cuMemAlloc_v2"));
    g_assert_true(dlsym(library, "cudbgGetAPI") == kit_driver("cudbgGetAPI"));
    g_assert_null(dlsym(library, "real_resolve"));
}

static void test_by_name(void)
{
    kit_open(LIMIT);
    kit_run(by_name);
    kit_close();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/getproc/forms", test_forms);
    g_test_add_func("/getproc/other-name", test_other_name);
    g_test_add_func("/getproc/drivers-word", test_drivers_word);
    g_test_add_func("/getproc/unknown", test_unknown);
    g_test_add_func("/getproc/unknown-ungoverned", test_unknown_ungoverned);
    g_test_add_func("/getproc/later-forms", test_later_forms);
    g_test_add_func("/getproc/later-forms-ungoverned", test_later_forms_ungoverned);
    g_test_add_func("/getproc/unexported", test_unexported);
    g_test_add_func("/getproc/by-name", test_by_name);
    return g_test_run();
}
