// SPDX-License-Identifier: MIT
/*
 * vgpu-memory-limit over the fake card's NVML: what a cgroup may have of the card's memory, also by
 * a program that goes round the door. What counts is what the card gives out.
 */
#include "kit.h"

#include <dlfcn.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/wait.h>

#define PCI   "0000:3b:00.0"
#define LIMIT (64 * MIB)

static char *cgroup;

/* Exit status; what it says must have @words. */
static int run(const char *verb, const char *path, const char *bytes, const char *words)
{
    g_autofree char *line =
        g_strdup_printf(CLIENTS_DIR "/vgpu-memory-limit %s " PCI " %s %s", verb, path, bytes);
    g_autofree char *out = NULL;
    g_autofree char *err = NULL;
    g_autofree char *said = NULL;
    g_autoptr(GError) error = NULL;
    int status;

    g_spawn_command_line_sync(line, &out, &err, &status, &error);
    g_assert_no_error(error);
    said = g_strconcat(out, err, NULL);
    g_test_message("%s: %s", line, said);
    g_assert_nonnull(strstr(said, words));
    return WEXITSTATUS(status);
}

/*
 * A program that is not under the door, as a static binary would be: it takes memory from the
 * driver itself.
 */
static void *driver;

static CUresult take(size_t bytes)
{
    CUresult (*alloc)(CUdeviceptr *at, size_t size);
    CUdeviceptr at;

    *(void **)&alloc = dlsym(driver, "cuMemAlloc_v2");
    return alloc(&at, bytes);
}

static void enter(const char *below)
{
    CUresult (*init)(unsigned int flags);
    CUresult (*create)(CUcontext *context, unsigned int flags, CUdevice device);
    g_autofree char *path = g_strconcat(cgroup, below, NULL);
    CUcontext context;

    g_setenv("FAKE_CUDA_CGROUP", path, TRUE);
    driver = dlopen(REAL_DIR "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    g_assert_nonnull(driver);
    *(void **)&init = dlsym(driver, "cuInit");
    *(void **)&create = dlsym(driver, "cuCtxCreate_v2");
    ok(init(0));
    ok(create(&context, 0, 0));
}

static void take_all(void)
{
    enter("");
    ok(take(LIMIT - 16 * MIB));
    full(take(32 * MIB));
    ok(take(16 * MIB));
    full(take(2 * MIB));
}

/* A cgroup of its own, below. */
static void take_rest_below(void)
{
    enter("/below");
    full(take(2 * MIB));
}

static void stay(void)
{
    enter("");
    ok(take(LIMIT));
    for (;;)
        g_usleep(1000000);
}

static void take_beside(void)
{
    enter("-beside");
    ok(take(4 * LIMIT));
}

static void test_bypass(void)
{
    g_autofree char *bytes = g_strdup_printf("%llu", LIMIT);

    g_assert_cmpint(run("set", cgroup, bytes, ""), ==, 0);
    kit_run(take_all);
    kit_start(stay);
    while (kit_on_card() < LIMIT)
        g_usleep(1000);
    g_assert_cmpint(run("show", cgroup, "", "67108864 67108864"), ==, 0);
    kit_run(take_rest_below);
    kit_run(take_beside);
    kit_kill_all();
    g_assert_cmpint(run("clear", cgroup, "", ""), ==, 0);
    g_assert_cmpint(run("show", cgroup, "", "max 0"), ==, 0);
    kit_run(take_beside);
}

static void test_refused(void)
{
    g_assert_cmpint(run("set", "/sys/fs/cgroup/no-such", "1048576", "Not Found"), ==, 1);
    g_assert_cmpint(run("set", "relative", "1048576", "usage"), ==, 2);
    g_assert_cmpint(run("set", cgroup, "0", "usage"), ==, 2);
    g_assert_cmpint(run("set", cgroup, "-5", "usage"), ==, 2);
    g_assert_cmpint(run("clear", cgroup, "5", "usage"), ==, 2);
    g_setenv("FAKE_NVML_LIMITS", "0", TRUE);
    g_assert_cmpint(run("set", cgroup, "1048576", "cannot set the limit"), ==, 3);
    g_unsetenv("FAKE_NVML_LIMITS");
}

int main(int argc, char **argv)
{
    int status;

    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory-limit/bypass", test_bypass);
    g_test_add_func("/memory-limit/refused", test_refused);
    kit_open(0);
    cgroup = g_build_filename(kit_live.root, "cgroup", NULL);
    g_assert_cmpint(g_mkdir(cgroup, 0755), ==, 0);
    status = g_test_run();
    g_free(cgroup);
    kit_close();
    return status;
}
