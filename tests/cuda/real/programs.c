// SPDX-License-Identifier: MIT
/*
 * Programs of NVIDIA's tools and of others, unmodified, in a slice of the fake card: the door is in
 * front of the fake driver as it is installed, and kernels compute. Each program checks its own
 * results, and that it gets no more memory than the slice has. Those that check could not make or
 * get are skipped, and it says why.
 */
#include "kit.h"
#include "remote/server.h"
#include "remote/vm_program.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_MIB "64"
#define HASH      "900150983cd24fb0d6963f7d28e17f72"
#define ROOT      REAL_PROGRAMS "/root"
#define LIBRARIES ROOT "/usr/lib/x86_64-linux-gnu"
/* Where Debian has no link to the library. */
#define DEEPER LIBRARIES "/blas:" LIBRARIES "/lapack:" ROOT "/usr/lib/llvm-19/lib"

/* The same programs, whose driver is a worker's, which they reach by a socket, or from a VM. */
static enum { WAY_DOOR, WAY_SOCKET, WAY_VM } way;

/* @needs: what must be there, below REAL_PROGRAMS, too. */
struct client {
    const char *needs;
    const char *argv[24];
};

/* @memory: how it shows that of the slice, or how much of it is in use. */
struct monitor {
    struct client client;
    const char *memory;
};

static char **make_environment(void)
{
    char **env = g_get_environ();

    /* The door is nowhere in a worker's program's way: Numba would find it. */
    env = g_environ_setenv(env, "LD_LIBRARY_PATH",
                           way == WAY_DOOR ? PLAIN_DIR ":" REAL_PROGRAMS ":" LIBRARIES ":" DEEPER
                                           : REAL_PROGRAMS ":" LIBRARIES ":" DEEPER,
                           TRUE);
    env = g_environ_setenv(env, "PYTHONPATH", ROOT "/usr/lib/python3/dist-packages", TRUE);
    env = g_environ_setenv(env, "CUDA_HOME", REAL_PROGRAMS "/home", TRUE);
    env = g_environ_setenv(env, "NUMBA_CACHE_DIR", "/tmp", TRUE);
    env = g_environ_setenv(env, "PYTHONWARNINGS", "ignore", TRUE);
    env = g_environ_setenv(env, "FAKE_CUDA_VERBOSE", "1", TRUE);
    env = g_environ_setenv(env, "VGPU_CUDA_VERBOSE", "1", TRUE);
    if (way == WAY_VM)
        return vm_program_environment(env);
    return way == WAY_SOCKET ? server_environment(env) : env;
}

/* With all files that it is given. */
static bool is_here(const struct client *client)
{
    for (const char *const *at = client->argv; *at; at++)
        if (**at == '/' && access(*at, R_OK))
            return false;
    return !access(client->needs, R_OK);
}

/* What it printed; NULL: it is not here. */
static char *run(const struct client *client, int *status)
{
    g_auto(GStrv) env = make_environment();
    char *said = NULL;
    GError *error = NULL;

    if (!is_here(client)) {
        g_test_skip("it is not here");
        return NULL;
    }
    g_assert_true(g_spawn_sync("/tmp", (char **)client->argv, env, G_SPAWN_SEARCH_PATH, NULL, NULL,
                               &said, NULL, status, &error));
    g_assert_no_error(error);
    g_test_message("%s: status %d, %s", client->argv[0], *status, said);
    return said;
}

static void open_slice_of(const char *vram)
{
    g_autofree char *slice = g_strdup_printf("[slice]\nvram=%s\ncap=90\nhard=true\n", vram);
    g_autofree char *shown = NULL;

    kit_open_two(slice, "[slice]\n");
    shown = g_build_filename(kit_live.root, "only-a", NULL);
    g_setenv("VGPU_GOVERNOR_SLICES", shown, TRUE);
    g_setenv("FAKE_CUDA_CONTENT", "1", TRUE);
    if (way == WAY_SOCKET)
        server_open();
    else if (way == WAY_VM)
        vm_program_open();
}

static void open_slice(void)
{
    open_slice_of("67108864");
}

static void close_slice(void)
{
    if (way == WAY_SOCKET)
        server_close();
    else if (way == WAY_VM)
        vm_program_close();
    kit_close();
    g_unsetenv("FAKE_CUDA_CAPABILITY");
    g_unsetenv("FAKE_CUDA_CONTENT");
}

/* Its results are right, it has the slice's memory, and was charged for its time. */
static void test_client(const void *data)
{
    g_autofree char *said = NULL;
    int status;

    open_slice();
    said = run(data, &status);
    if (said) {
        g_assert_cmpint(status, ==, 0);
        g_assert_true(g_str_has_suffix(said, LIMIT_MIB "\n"));
        kit_charged(0);
        g_assert_cmpint(live_status(&kit_live, "a", "gpu_ns"), >, 0);
    }
    close_slice();
}

/* Code of an architecture cannot run there: no binary for the card. */
static void test_cubin(const void *data)
{
    g_autofree char *said = NULL;
    int status;

    open_slice();
    said = run(data, &status);
    if (said) {
        g_assert_cmpint(status, !=, 0);
        g_assert_true(g_str_has_suffix(said, ": 209\n"));
        kit_charged(0);
    }
    close_slice();
}

/* The runtime finds that the driver is not NVIDIA's, and says that it cannot use it: no crash. */
static void test_runtime(const void *data)
{
    g_autofree char *said = NULL;
    int status;

    open_slice();
    said = run(data, &status);
    if (said) {
        g_assert_cmpint(status, ==, 0);
        g_assert_cmpint(atoi(said), !=, 0);
    }
    close_slice();
}

/* It shows the slice's memory. */
static void test_hashcat(const void *data)
{
    g_autofree char *said = NULL;
    int status;

    open_slice();
    said = run(data, &status);
    if (said) {
        g_assert_nonnull(strstr(said, "Backend Device ID #1"));
        g_assert_nonnull(strstr(said, "Memory.Total...: " LIMIT_MIB " MB"));
        kit_charged(0);
    }
    close_slice();
}

/* It finds three letters by their MD5. Its NVRTC knows no card of 10.0. */
static void test_crack(const void *data)
{
    g_autofree char *said = NULL;
    int status;

    g_setenv("FAKE_CUDA_CAPABILITY", "80", TRUE);
    open_slice_of("805306368");
    said = run(data, &status);
    if (said) {
        g_assert_nonnull(strstr(said, HASH ":abc"));
        kit_charged(0);
        g_assert_cmpint(live_status(&kit_live, "a", "gpu_ns"), >, 0);
    }
    close_slice();
}

/*
 * It shows the slice's memory, or refuses an NVML without the private table that it asks for, which
 * the fake one does not have.
 */
static void test_smi(const void *data)
{
    g_autofree char *said = NULL;
    int status;

    open_slice();
    said = run(data, &status);
    if (said && strstr(said, "MiB"))
        g_assert_nonnull(strstr(said, LIMIT_MIB "MiB"));
    else if (said)
        g_test_skip(g_strdelimit(g_strchomp(said), "\n", ' '));
    close_slice();
}

/* What shows a card shows the slice. */
static void test_monitor(const void *data)
{
    const struct monitor *monitor = data;
    g_autofree char *said = NULL;
    int status;

    open_slice();
    said = run(&monitor->client, &status);
    if (said) {
        g_assert_cmpint(status, ==, 0);
        g_assert_nonnull(strstr(said, monitor->memory));
        kit_charged(0);
    }
    close_slice();
}

#define OWN(name) REAL_PROGRAMS "/" name
#define PYTHON    ROOT "/usr/lib/python3/dist-packages"

static const struct client fatbin = {"/", {OWN("driver"), OWN("kernels.fatbin")}};
static const struct client ptx = {"/", {OWN("driver"), OWN("kernels.ptx")}};
static const struct client cubin = {"/", {OWN("driver"), OWN("kernels.cubin")}};
static const struct client nvrtc = {"/", {OWN("nvrtc"), OWN("kernels.cu")}};
static const struct client fft = {"/", {OWN("fft")}};
static const struct client runtime = {"/", {OWN("runtime")}};
static const struct client numba = {PYTHON "/numba", {"python3", OWN("with_numba.py")}};
static const struct client pycuda = {PYTHON "/pycuda",
                                     {"python3", OWN("with_pycuda.py"), OWN("kernels.ptx")}};
static const struct client hashcat = {"/usr/share/hashcat", {"/usr/bin/hashcat", "-I"}};
/* As little work at once as it can do. */
static const struct client crack = {"/usr/share/hashcat",
                                    {"/usr/bin/hashcat",
                                     "-m",
                                     "0",
                                     "-a",
                                     "3",
                                     "-D",
                                     "2",
                                     "-d",
                                     "1",
                                     "--force",
                                     "--potfile-disable",
                                     "--hwmon-disable",
                                     "--self-test-disable",
                                     "-u",
                                     "1",
                                     "-n",
                                     "1",
                                     "-T",
                                     "32",
                                     HASH,
                                     "?l?l?l"}};
static const struct client smi = {"/", {ROOT "/usr/lib/nvidia/current/nvidia-smi"}};

static const struct monitor gpustat = {
    {PYTHON "/gpustat", {"python3", "-m", "gpustat", "--no-color"}}, "/    64 MB"};
static const struct monitor nvitop = {
    {PYTHON "/nvitop", {"python3", "-m", "nvitop", "--once", "--ascii"}}, "64.00MiB"};
static const struct monitor nvtop = {{"/", {ROOT "/usr/bin/nvtop", "--snapshot"}},
                                     "\"mem_util\": \"0%\""};

/* --remote, --vm: each program has a worker. */
int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[argc - 1], "--remote"))
        way = WAY_SOCKET;
    else if (argc > 1 && !strcmp(argv[argc - 1], "--vm"))
        way = WAY_VM;
    argc -= way != WAY_DOOR;
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/real/nvcc/fatbin", &fatbin, test_client);
    g_test_add_data_func("/real/nvcc/ptx", &ptx, test_client);
    g_test_add_data_func("/real/nvcc/cubin", &cubin, test_cubin);
    g_test_add_data_func("/real/nvrtc", &nvrtc, test_client);
    g_test_add_data_func("/real/cufft", &fft, test_client);
    g_test_add_data_func("/real/runtime", &runtime, test_runtime);
    g_test_add_data_func("/real/pycuda", &pycuda, test_client);
    g_test_add_data_func("/real/numba", &numba, test_client);
    g_test_add_data_func("/real/hashcat", &hashcat, test_hashcat);
    g_test_add_data_func("/real/hashcat-cracks", &crack, test_crack);
    /* It wants a table of functions that only NVIDIA's NVML has. */
    if (way == WAY_DOOR)
        g_test_add_data_func("/real/nvidia-smi", &smi, test_smi);
    g_test_add_data_func("/real/gpustat", &gpustat, test_monitor);
    g_test_add_data_func("/real/nvitop", &nvitop, test_monitor);
    g_test_add_data_func("/real/nvtop", &nvtop, test_monitor);
    return g_test_run();
}
