// SPDX-License-Identifier: MIT
/* A process with both doors, CUDA and Vulkan, is one member of its slice, with one ledger. */
#include "kit.h"

#include <dlfcn.h>
#include <signal.h>

#define LIMIT (64 * MIB)

/* The file that a door's member functions are in. */
static const char *member_of(const char *door)
{
    void *library = dlopen(door, RTLD_NOW);
    void *function;
    Dl_info info;

    if (!library)
        g_error("%s", dlerror());
    function = dlsym(library, "governor_member_get");
    g_assert_nonnull(function);
    g_assert_cmpint(dladdr(function, &info), !=, 0);
    return info.dli_fname;
}

static void one(void)
{
    g_autofree char *path = g_build_filename(g_getenv("VGPU_GOVERNOR_SLICES"), "0000:3b:00.0", "a",
                                             "governor.sock", NULL);
    GovernorMember *member;
    CUdeviceptr dptr, never;
    size_t free, total;

    g_assert_cmpstr(member_of("libcuda.so.1"), ==, member_of(LAYER));
    g_assert_cmpstr(member_of("libnvidia-ml.so.1"), ==, member_of(LAYER));
    kit_context();
    ok(cuMemAlloc_v2(&dptr, 4 * MIB));
    /* As the layer joins. */
    member = governor_member_get(path, true);
    g_assert_nonnull(member);
    live_await(&kit_live, "a", "members", 1);
    g_assert_cmpint(governor_member_reserve(member, 40 * MIB, false), ==, GOVERNOR_MEMORY_DEVICE);
    kit_charged(44 * MIB);
    ok(cuMemGetInfo_v2(&free, &total));
    g_assert_cmpuint(free, ==, 20 * MIB);
    full(cuMemAlloc_v2(&never, 24 * MIB));
    governor_member_release(member, 40 * MIB, GOVERNOR_MEMORY_DEVICE);
    kit_charged(4 * MIB);
    governor_member_put(member);
    live_await(&kit_live, "a", "members", 1);
    kit_charged(4 * MIB);
    ok(cuMemFree_v2(dptr));
}

static void test_one_member(void)
{
    kit_open(LIMIT);
    kit_run(one);
    kit_close();
}

/* An arbiter that is started anew is told what there is. It is the test's child, which starts it.
 */
static void restarted(void)
{
    struct live_report *report = &kit_live.reports[0];
    CUdeviceptr dptr, more;

    kit_context();
    ok(cuMemAlloc_v2(&dptr, 40 * MIB));
    report->ready = 1;
    while (!report->go)
        g_usleep(1000);
    kit_charged(40 * MIB);
    full(cuMemAlloc_v2(&more, 30 * MIB));
    ok(cuMemAlloc_v2(&more, 20 * MIB));
    kit_charged(60 * MIB);
    ok(cuMemFree_v2(dptr));
    kit_charged(20 * MIB);
}

static void test_restart(void)
{
    unsigned int program;

    kit_open(LIMIT);
    program = kit_start(restarted);
    live_await_ready(&kit_live, 0);
    live_kill_arbiter(&kit_live, SIGKILL);
    live_start_arbiter(&kit_live);
    kit_live.reports[0].go = 1;
    kit_await(program);
    kit_close();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/doors/one-member", test_one_member);
    g_test_add_func("/doors/restart", test_restart);
    return g_test_run();
}
