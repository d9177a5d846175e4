// SPDX-License-Identifier: MIT
/* vgpu-nvidia-readings over the fake card's NVML: a file for each GPU, and none that is not true.
 */
#include <fcntl.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

#define PCI "0000:3b:00.0"

static char *directory;

/* Exit status; what it says must have @words. */
static int run(const char *words)
{
    const char *argv[] = {CLIENTS_DIR "/vgpu-nvidia-readings", "--once", directory, NULL};
    g_autofree char *said = NULL;
    g_autoptr(GError) error = NULL;
    int status;

    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, NULL, &said, &status,
                 &error);
    g_assert_no_error(error);
    g_test_message("%s", said);
    g_assert_nonnull(strstr(said, words));
    return WEXITSTATUS(status);
}

static GKeyFile *file_of(const char *address)
{
    g_autofree char *path = g_build_filename(directory, address, NULL);
    GKeyFile *file = g_key_file_new();

    if (g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, NULL))
        return file;
    g_key_file_unref(file);
    return NULL;
}

static guint64 value(GKeyFile *file, const char *key)
{
    return g_key_file_get_uint64(file, "gpu", key, NULL);
}

static void test_all(void)
{
    gint64 before = g_get_monotonic_time();
    g_autoptr(GKeyFile) file = NULL;

    g_setenv("FAKE_NVML_ECC", "2", TRUE);
    g_assert_cmpint(run(""), ==, 0);
    g_unsetenv("FAKE_NVML_ECC");
    file = file_of(PCI);
    g_assert_nonnull(file);
    g_assert_cmpint((gint64)value(file, "time"), >=, before);
    /* Without what the driver keeps. */
    g_assert_cmpuint(value(file, "memory"), ==, (8ull << 30) - (1 << 20));
    g_assert_cmpuint(value(file, "temperature"), ==, 42000);
    g_assert_cmpuint(value(file, "temperature_limit"), ==, 87000);
    g_assert_cmpuint(value(file, "power"), ==, 78290000);
    g_assert_cmpuint(value(file, "energy"), ==, 123456000);
    g_assert_cmpuint(value(file, "ecc_uncorrectable"), ==, 2);
    g_assert_cmpuint(value(file, "ecc_correctable"), ==, 5);
    g_assert_cmpuint(value(file, "busy"), ==, 50);
    /* An A100's 19.5 TFLOPS and 1,555 GB/s. */
    g_assert_cmpuint(value(file, "flops"), ==, 19491840000000);
    g_assert_cmpuint(value(file, "memory_bandwidth"), ==, 1555200000000);
}

static guint64 links(GKeyFile *file, const char *end)
{
    return g_key_file_get_uint64(file, "nvlink", end, NULL);
}

/* Each GPU of the fake driver has two links to each other one, or to switches. */
static void test_links(void)
{
    g_autoptr(GKeyFile) alone = NULL;
    g_autoptr(GKeyFile) direct = NULL;
    g_autoptr(GKeyFile) switched = NULL;

    g_assert_cmpint(run(""), ==, 0);
    alone = file_of(PCI);
    g_assert_false(g_key_file_has_group(alone, "nvlink"));
    g_setenv("FAKE_CUDA_DEVICES", "2", TRUE);
    g_assert_cmpint(run(""), ==, 0);
    direct = file_of(PCI);
    g_assert_cmpuint(links(direct, "0000:3c:00.0"), ==, 2);
    g_assert_cmpuint(links(direct, "switch"), ==, 0);
    g_setenv("FAKE_NVML_SWITCH", "1", TRUE);
    g_assert_cmpint(run(""), ==, 0);
    switched = file_of(PCI);
    g_assert_cmpuint(links(switched, "0000:3c:00.0"), ==, 0);
    g_assert_cmpuint(links(switched, "switch"), ==, 2);
    g_unsetenv("FAKE_NVML_SWITCH");
    g_unsetenv("FAKE_CUDA_DEVICES");
}

static void hold(void)
{
    CUdeviceptr at;

    kit_context();
    ok(cuMemAlloc_v2(&at, 5 * MIB));
    pause();
}

/* What each program has of the card. */
static void test_processes(void)
{
    g_autofree char *pid = g_strdup_printf("%d", kit_pid(kit_start(hold)));
    g_autoptr(GKeyFile) file = NULL;

    while (kit_on_card() < 5 * MIB)
        g_usleep(1000);
    g_assert_cmpint(run(""), ==, 0);
    file = file_of(PCI);
    g_assert_cmpuint(value(file, "memory_used"), ==, kit_on_card());
    g_assert_cmpuint(g_key_file_get_uint64(file, "process_memory", pid, NULL), >=, 5 * MIB);
    g_assert_cmpuint(g_key_file_get_uint64(file, "process_busy", pid, NULL), ==, 7);
    kit_kill_all();
}

/* A card with the host's memory (GB10): all else is read. */
static void test_unified(void)
{
    g_autoptr(GKeyFile) file = NULL;

    g_setenv("FAKE_NVML_MEMORY", "unsupported", TRUE);
    g_assert_cmpint(run(""), ==, 0);
    g_unsetenv("FAKE_NVML_MEMORY");
    file = file_of(PCI);
    g_assert_nonnull(file);
    g_assert_false(g_key_file_has_key(file, "gpu", "memory", NULL));
    g_assert_false(g_key_file_has_key(file, "gpu", "memory_used", NULL));
    g_assert_true(g_key_file_get_boolean(file, "gpu", "unified", NULL));
    g_assert_cmpuint(value(file, "temperature"), ==, 42000);
    g_assert_cmpuint(value(file, "power"), ==, 78290000);
    g_assert_cmpuint(value(file, "busy"), ==, 50);
    g_assert_true(g_key_file_has_group(file, "process_memory"));
}

static void test_old_gpu(void)
{
    g_autoptr(GKeyFile) file = NULL;

    g_setenv("FAKE_NVML_OLD", "1", TRUE);
    g_assert_cmpint(run(""), ==, 0);
    g_unsetenv("FAKE_NVML_OLD");
    file = file_of(PCI);
    g_assert_cmpuint(value(file, "memory"), ==, (8ull << 30) - (1 << 20));
    g_assert_false(g_key_file_has_key(file, "gpu", "temperature", NULL));
    g_assert_false(g_key_file_has_key(file, "gpu", "ecc_correctable", NULL));
    g_assert_false(g_key_file_has_key(file, "gpu", "busy", NULL));
    g_assert_false(g_key_file_has_key(file, "gpu", "flops", NULL));
    g_assert_false(g_key_file_has_key(file, "gpu", "memory_bandwidth", NULL));
}

/* One GPU was taken out, and then the driver unloaded. */
static void test_gone(void)
{
    g_autoptr(GKeyFile) file = NULL;
    g_autofree char *other = g_build_filename(directory, "0000:af:00.0", NULL);

    g_assert_true(g_file_set_contents(other, "[gpu]\nmemory=1\n", -1, NULL));
    g_assert_cmpint(run(""), ==, 0);
    g_assert_false(g_file_test(other, G_FILE_TEST_EXISTS));
    file = file_of(PCI);
    g_assert_nonnull(file);
    g_setenv("FAKE_NVML_GONE", "1", TRUE);
    g_assert_cmpint(run("cannot use NVIDIA's library: "), ==, 1);
    g_unsetenv("FAKE_NVML_GONE");
    g_assert_null(file_of(PCI));
}

/* The GPU's memory is known for as long as it has its driver; "time" says how old the rest is. */
static void test_failures(void)
{
    static const struct {
        const char *way;
        const char *words;
        int status;
    } cases[] = {
        {"1", "cannot use NVIDIA's library: ", 1},
        {"2", "", 0},
        {"3", PCI ": NVIDIA's library does not report its memory", 0},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GKeyFile) before = NULL;
        g_autoptr(GKeyFile) after = NULL;

        g_assert_cmpint(run(""), ==, 0);
        before = file_of(PCI);
        g_assert_nonnull(before);
        g_setenv("FAKE_NVML_FAILS", cases[i].way, TRUE);
        g_assert_cmpint(run(cases[i].words), ==, cases[i].status);
        g_unsetenv("FAKE_NVML_FAILS");
        after = file_of(PCI);
        g_assert_nonnull(after);
        g_assert_cmpuint(value(after, "memory"), ==, value(before, "memory"));
        g_assert_cmpuint(value(after, "time"), ==, value(before, "time"));
    }
}

static guint64 time_of_reading(void)
{
    g_autoptr(GKeyFile) file = file_of(PCI);

    return file ? value(file, "time") : 0;
}

/* Who wants a reading gets one long before the next would come, and no flood. */
static void test_wanted(void)
{
    const char *argv[] = {CLIENTS_DIR "/vgpu-nvidia-readings", directory, NULL};
    g_autofree char *wanted = g_build_filename(directory, ".wanted", NULL);
    g_autofree char *path = g_build_filename(directory, PCI, NULL);
    guint64 first, last;
    GPid pid;

    unlink(path);
    g_assert_true(g_spawn_async(NULL, (char **)argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL,
                                &pid, NULL));
    while (!(first = time_of_reading()))
        g_usleep(1000);
    for (last = first; last == first; last = time_of_reading()) {
        g_assert_cmpint(close(open(wanted, O_WRONLY | O_CREAT, 0644)), ==, 0);
        g_usleep(1000);
    }
    g_assert_cmpuint(last - first, >=, G_USEC_PER_SEC / 2);
    g_assert_cmpuint(last - first, <, 30 * G_USEC_PER_SEC);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    unlink(wanted);
}

static void test_refused(void)
{
    g_autofree char *right = g_steal_pointer(&directory);

    directory = (char *)"relative";
    g_assert_cmpint(run("usage"), ==, 2);
    directory = (char *)"/no/such";
    g_assert_cmpint(run("/no/such: No such file"), ==, 1);
    directory = g_steal_pointer(&right);
}

int main(int argc, char **argv)
{
    int status;

    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/readings/all", test_all);
    g_test_add_func("/readings/links", test_links);
    g_test_add_func("/readings/processes", test_processes);
    g_test_add_func("/readings/unified", test_unified);
    g_test_add_func("/readings/old-gpu", test_old_gpu);
    g_test_add_func("/readings/gone", test_gone);
    g_test_add_func("/readings/failures", test_failures);
    g_test_add_func("/readings/wanted", test_wanted);
    g_test_add_func("/readings/refused", test_refused);
    kit_open(0);
    directory = g_build_filename(kit_live.root, "readings", NULL);
    g_assert_cmpint(g_mkdir(directory, 0755), ==, 0);
    status = g_test_run();
    g_free(directory);
    kit_close();
    return status;
}
