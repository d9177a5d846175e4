// SPDX-License-Identifier: MIT
/*
 * Contexts: the driver's own memory is charged by what NVML reports, and ends with the context, as
 * does all memory in it.
 */
#include "kit.h"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT  (1000 * MIB)
#define HIDDEN "314572800"
#define OWN    (300 * MIB)

static void in_slice(void (*program)(void))
{
    kit_open(LIMIT);
    g_setenv("FAKE_CUDA_HIDDEN", HIDDEN, TRUE);
    kit_run(program);
    kit_close();
}

static void contexts(void)
{
    CUcontext first, second, third, fourth = NULL;
    CUdeviceptr dptr, other;

    ok(cuInit(0));
    ok(cuCtxCreate_v2(&first, 0, 0));
    kit_charged(OWN);
    ok(cuMemAlloc_v2(&dptr, 4 * MIB));
    ok(cuCtxCreate_v3(&second, NULL, 0, 0, 0));
    kit_charged(2 * OWN + 4 * MIB);
    ok(cuMemAlloc_v2(&other, 8 * MIB));
    ok(cuCtxCreate_v4(&third, NULL, 0, 0));
    kit_charged(3 * OWN + 12 * MIB);
    /* One that does not fit goes again. */
    full(cuCtxCreate_v2(&fourth, 0, 0));
    g_assert_null(fourth);
    kit_charged(3 * OWN + 12 * MIB);
    g_assert_cmpuint(kit_on_card(), ==, 3 * OWN + 12 * MIB);
    /* With a context all of its memory is free, and no other's. */
    ok(cuCtxDestroy_v2(first));
    kit_charged(2 * OWN + 8 * MIB);
    ok(cuCtxSetCurrent(second));
    ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2 * MIB));
    kit_charged(2 * OWN + 10 * MIB);
    ok(cuMemFree_v2(other));
    kit_charged(2 * OWN + 2 * MIB);
    ok(cuCtxDestroy(second));
    ok(cuCtxDetach(third));
    kit_charged(0);
}

static void test_contexts(void)
{
    in_slice(contexts);
}

static void primary(void)
{
    CUcontext context, again;
    CUdeviceptr dptr;

    ok(cuInit(0));
    ok(cuDevicePrimaryCtxRetain(&context, 0));
    ok(cuDevicePrimaryCtxRetain(&again, 0));
    kit_charged(OWN);
    ok(cuCtxSetCurrent(context));
    ok(cuMemAlloc_v2(&dptr, 4 * MIB));
    ok(cuDevicePrimaryCtxRelease_v2(0));
    kit_charged(OWN + 4 * MIB);
    ok(cuDevicePrimaryCtxRelease(0));
    kit_charged(0);
    ok(cuDevicePrimaryCtxRetain(&context, 0));
    kit_charged(OWN);
    ok(cuDevicePrimaryCtxReset_v2(0));
    kit_charged(0);
}

static void test_primary(void)
{
    in_slice(primary);
}

/* Those that other calls make. */
static void others_contexts(void)
{
    CUcontext context;
    CUgreenCtx green, second = NULL;

    ok(cuInit(0));
    ok(cuGreenCtxCreate(&green, NULL, 0, 1));
    kit_charged(OWN);
    ok(cuGLCtxCreate_v2(&context, 0, 0));
    kit_charged(2 * OWN);
    ok(cuVDPAUCtxCreate_v2(&context, 0, 0, 0, NULL));
    kit_charged(3 * OWN);
    full(cuGreenCtxCreate(&second, NULL, 0, 1));
    g_assert_null(second);
    full(cuGLCtxCreate_v2(&context, 0, 0));
    g_assert_cmpuint(kit_on_card(), ==, 3 * OWN);
    ok(cuGreenCtxDestroy(green));
    kit_charged(2 * OWN);
}

static void test_others_contexts(void)
{
    in_slice(others_contexts);
}

static void (**after_processes)(void);
static CUdeviceptr others;

/* In the turn of NVML's answer. */
static void free_others(void)
{
    *after_processes = NULL;
    ok(cuMemFree_v2(others));
}

/* Memory that another thread frees meanwhile is not taken for the driver's own. */
static void freed_meanwhile(void)
{
    CUcontext first, second;
    void *nvml;

    ok(cuInit(0));
    ok(cuCtxCreate_v2(&first, 0, 0));
    nvml = dlopen(REAL_DIR "/libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD);
    g_assert_nonnull(nvml);
    after_processes = dlsym(nvml, "fake_after_processes");
    ok(cuMemAlloc_v2(&others, 64 * MIB));
    *after_processes = free_others;
    ok(cuCtxCreate_v2(&second, 0, 0));
    g_assert_null(*after_processes);
    kit_charged(2 * OWN);
}

static void test_freed_meanwhile(void)
{
    in_slice(freed_meanwhile);
}

/* cuInit() is nobody's business, and neither is a program that only looks. */
static void looks_only(void)
{
    int count;

    ok(cuInit(0));
    ok(cuDeviceGetCount(&count));
    live_await(&kit_live, "a", "members", 0);
}

static void test_joins_late(void)
{
    in_slice(looks_only);
}

#define not_ready(call) g_assert_cmpint(call, ==, CUDA_ERROR_SYSTEM_NOT_READY)

/* A slice that has to be there, and is not. */
static void required(void)
{
    CUcontext context = NULL;
    CUgreenCtx green = NULL;
    CUdeviceptr dptr;

    ok(cuInit(0));
    not_ready(cuCtxCreate_v2(&context, 0, 0));
    not_ready(cuDevicePrimaryCtxRetain(&context, 0));
    not_ready(cuGreenCtxCreate(&green, NULL, 0, 1));
    not_ready(cuGLCtxCreate_v2(&context, 0, 0));
    not_ready(cuVDPAUCtxCreate_v2(&context, 0, 0, 0, NULL));
    g_assert_null(green);
    g_assert_cmpint(cuMemAlloc_v2(&dptr, 1000), ==, CUDA_ERROR_INVALID_CONTEXT);
    g_assert_cmpuint(kit_on_card(), ==, 0);
    live_start_arbiter(&kit_live);
    ok(cuCtxCreate_v2(&context, 0, 0));
    kit_charged(OWN);
}

static void test_required(void)
{
    kit_open(LIMIT);
    g_setenv("FAKE_CUDA_HIDDEN", HIDDEN, TRUE);
    g_setenv("VGPU_GOVERNOR_REQUIRED", "1", TRUE);
    live_kill_arbiter(&kit_live, SIGTERM);
    kit_run(required);
    kit_close();
}

/* A file beside the socket says it as well, and the environment can't take it back. */
static void test_required_by_file(void)
{
    g_autofree char *file = NULL;

    kit_open(LIMIT);
    file = g_build_filename(kit_live.root, "run/vgpu/slices/a/required", NULL);
    g_assert_true(g_file_set_contents(file, "", 0, NULL));
    g_setenv("FAKE_CUDA_HIDDEN", HIDDEN, TRUE);
    g_setenv("VGPU_GOVERNOR_REQUIRED", "0", TRUE);
    live_kill_arbiter(&kit_live, SIGTERM);
    kit_run(required);
    kit_close();
}

/* The same, with a context that the door has not seen made. */
static void required_past_us(void)
{
    CUresult (*create)(CUcontext *, unsigned int, CUdevice) = NULL;
    CUgraphExec exec;
    CUgraph graph;
    CUcontext context;
    char byte = 0;

    *(void **)&create = kit_driver("cuCtxCreate_v2");
    ok(cuInit(0));
    ok(create(&context, 0, 0));
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    not_ready(cuLaunchKernel(kit_kernel(1000), 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    not_ready(cuGraphLaunch(exec, NULL));
    not_ready(cuMemcpyHtoD_v2(4096, &byte, 1));
    not_ready(cuMemsetD8_v2(4096, 0, 64 * MIB));
    g_assert_cmpuint(kit_calls("cuLaunchKernel"), ==, 0);
    g_assert_cmpuint(kit_calls("cuGraphLaunch"), ==, 0);
    live_start_arbiter(&kit_live);
    kit_launch(kit_kernel(1000), NULL);
}

static void test_required_past_us(void)
{
    kit_open(LIMIT);
    g_setenv("VGPU_GOVERNOR_REQUIRED", "1", TRUE);
    live_kill_arbiter(&kit_live, SIGTERM);
    kit_run(required_past_us);
    kit_close();
}

/* A child that only does something else neither hangs nor costs anything; nor does one that calls
 * CUDA. */
static void forks(void)
{
    CUdeviceptr dptr;
    int status;
    pid_t pid;

    kit_context();
    ok(cuMemAlloc_v2(&dptr, 4 * MIB));
    kit_charged(OWN + 4 * MIB);
    pid = fork();
    if (!pid) {
        cuMemFree_v2(dptr);
        cuMemFreeAsync(dptr, NULL);
        _exit(0);
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(status, ==, 0);
    kit_charged(OWN + 4 * MIB);
    ok(cuMemFree_v2(dptr));
    kit_charged(OWN);
}

static void test_forks(void)
{
    in_slice(forks);
}

/* A context that the door has not seen made, as the runtime can make one. */
static void past_us(void)
{
    CUresult (*create)(CUcontext *, unsigned int, CUdevice) = NULL;
    CUcontext context;
    CUdeviceptr dptr;

    *(void **)&create = kit_driver("cuCtxCreate_v2");
    ok(create(&context, 0, 0));
    ok(cuMemAlloc_v2(&dptr, 4 * MIB));
    kit_charged(OWN + 4 * MIB);
    ok(cuCtxDestroy_v2(context));
    kit_charged(0);
}

static void test_past_us(void)
{
    in_slice(past_us);
}

/*
 * With process ids of its own: an older driver lists the host's there, and by the same number
 * another tenant's program. Here it is the program's own memory that it must not take for its own.
 */
static void in_namespace(const char *version, uint64_t charged)
{
    int status;
    pid_t child;

    g_setenv("FAKE_NVML_VERSION", version, TRUE);
    g_assert_cmpint(unshare(CLONE_NEWPID), ==, 0);
    child = fork();
    if (!child) {
        kit_context();
        kit_charged(charged);
        _exit(0);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
}

static void namespace_of_old(void)
{
    in_namespace("560.35.03", 0);
}

static void namespace_of_new(void)
{
    in_namespace("565.57.01", OWN);
}

static void test_namespace(void)
{
    in_slice(namespace_of_new);
    in_slice(namespace_of_old);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/contexts/contexts", test_contexts);
    g_test_add_func("/contexts/primary", test_primary);
    g_test_add_func("/contexts/others-contexts", test_others_contexts);
    g_test_add_func("/contexts/freed-meanwhile", test_freed_meanwhile);
    g_test_add_func("/contexts/joins-late", test_joins_late);
    g_test_add_func("/contexts/required", test_required);
    g_test_add_func("/contexts/required-by-file", test_required_by_file);
    g_test_add_func("/contexts/required-past-us", test_required_past_us);
    g_test_add_func("/contexts/forks", test_forks);
    g_test_add_func("/contexts/past-us", test_past_us);
    g_test_add_func("/contexts/namespace", test_namespace);
    return g_test_run();
}
