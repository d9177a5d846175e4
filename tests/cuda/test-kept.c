// SPDX-License-Identifier: MIT
/*
 * A process that says it gave memory, and keeps it: the fake card's NVML tells how much it has, by
 * vgpu-nvidia-readings, and the arbiter finds it out.
 */
#include "kit.h"
#include "raw.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define GIB (1ull << 30)
#define HAS (4 * GIB)
/* What the other one waits for. */
#define LIE (GIB / 2 * 5)
#define PCI "0000:3b:00.0"

static const char *const slices[] = {"a", "[slice]\nvram=6442450944\nresident=1073741824\n", "b",
                                     "[slice]\nvram=6442450944\nresident=1073741824\n", NULL};

/* The arbiter's GPU has a name of its own. */
static GPid start_readings(const struct live *live)
{
    g_autofree char *made = g_build_filename(live->root, "readings", NULL);
    g_autofree char *read = g_build_filename(live->root, "run/vgpu/readings", NULL);
    g_autofree char *of_gpu = g_build_filename(read, "gpu0", NULL);
    g_autofree char *wanted = g_build_filename(read, ".wanted", NULL);
    const char *argv[] = {CLIENTS_DIR "/vgpu-nvidia-readings", made, NULL};
    GPid pid;

    g_assert_cmpint(g_mkdir(made, 0755), ==, 0);
    g_assert_cmpint(g_mkdir_with_parents(read, 0755), ==, 0);
    g_assert_cmpint(symlink("../../../readings/" PCI, of_gpu), ==, 0);
    g_assert_cmpint(symlink("../../../readings/.wanted", wanted), ==, 0);
    g_assert_true(g_spawn_async(NULL, (char **)argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL,
                                &pid, NULL));
    while (!g_file_test(of_gpu, G_FILE_TEST_EXISTS))
        g_usleep(1000);
    return pid;
}

static void set_environment(const struct live *live)
{
    g_autofree char *card = g_build_filename(live->root, "card", NULL);

    g_setenv("FAKE_CUDA_CARD", card, TRUE);
    g_setenv("FAKE_CUDA_TOTAL", "8589934592", TRUE);
}

/* Past the door. */
static CUdeviceptr take_memory(void)
{
    __typeof__(cuInit) *init = kit_driver("cuInit");
    __typeof__(cuDevicePrimaryCtxRetain) *retain = kit_driver("cuDevicePrimaryCtxRetain");
    __typeof__(cuCtxSetCurrent) *set = kit_driver("cuCtxSetCurrent");
    __typeof__(cuMemAlloc_v2) *allocate = kit_driver("cuMemAlloc_v2");
    CUcontext context;
    CUdeviceptr at;

    ok(init(0));
    ok(retain(&context, 0));
    ok(set(context));
    ok(allocate(&at, HAS));
    return at;
}

/* Of slice @slice, with that answer to a RESERVE of @bytes. */
static int join_with(const struct live *live, const char *slice, uint64_t bytes,
                     const struct governor_grant **grant)
{
    g_autofree char *path = live_socket(live, slice);
    struct governor_message answer;
    int fd = raw_connect(path), fds[2];

    g_assert_cmpint(fd, >=, 0);
    g_assert_true(raw_join(fd, fds));
    *grant = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fds[0], 0);
    close(fds[0]);
    close(fds[1]);
    g_assert_true(raw_send(fd, GOVERNOR_MOVABLE, 0, 0, 0));
    g_assert_true(raw_send(fd, GOVERNOR_RESERVE, bytes, 0, 0));
    g_assert_cmpint(recv(fd, &answer, sizeof(answer), 0), ==, sizeof(answer));
    return fd;
}

static void test_kept(void)
{
    __typeof__(cuMemFree_v2) *release = kit_driver("cuMemFree_v2");
    const struct governor_grant *of_a, *of_b;
    struct live live;
    CUdeviceptr at;
    gint64 begin;
    GPid readings;
    int a, b;

    live_open(&live, slices);
    set_environment(&live);
    live_configure(&live, NULL, "[gpu]\ncapacity=7516192768\n");
    live_await(&live, "a", "promised", (gint64)GIB);
    at = take_memory();
    readings = start_readings(&live);
    a = join_with(&live, "a", HAS, &of_a);
    b = join_with(&live, "b", 11 * GIB / 2, &of_b);
    while (atomic_load(&of_a->leave_until) != LIE)
        g_usleep(1000);
    begin = g_get_monotonic_time();
    g_assert_true(raw_send(a, GOVERNOR_GAVE, LIE, 1000, 0));
    while (live_status(&live, "a", "kept") <= 0)
        g_usleep(10000);
    g_test_message("found after %.2f s", (double)(g_get_monotonic_time() - begin) / 1e6);
    /* And believed when it is true. */
    ok(release(at));
    live_await(&live, "a", "kept", 0);
    close(a);
    close(b);
    kill(readings, SIGKILL);
    waitpid(readings, NULL, 0);
    live_close(&live);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kept", test_kept);
    return g_test_run();
}
