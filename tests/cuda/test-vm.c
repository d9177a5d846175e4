// SPDX-License-Identifier: MIT
/*
 * CUDA of a VM, without the VM: programs whose libcuda finds a render node of virtio-gpu, behind
 * which is the engine (remote/vm.c) with a worker in the slice "a". What they compute is right, the
 * slice's limits hold, and what ends ends alone.
 */
#include "kit.h"
#include "remote/program.h"
#include "remote/vm_program.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT (64 * MIB)

static void open_all(void)
{
    g_setenv("FAKE_CUDA_CONTENT", "1", TRUE);
    kit_open(LIMIT);
    vm_program_open();
}

static void close_all(void)
{
    vm_program_close();
    kit_charged(0);
    kit_close();
    g_unsetenv("VM_WINDOW");
    g_unsetenv("VM_KERNEL");
    g_unsetenv("VM_MEMORY");
    g_unsetenv("FAKE_CUDA_CONTENT");
}

static GPid start_client(const char *name)
{
    return program_start(name, vm_program_environment(g_get_environ()), NULL);
}

static GPid start_holding(const char *name)
{
    return program_start_holding(name, vm_program_environment(g_get_environ()));
}

static void test_case(const void *name)
{
    open_all();
    program_await(start_client(name), 0);
    close_all();
}

/* Of the engine, which is in the program here. */
static GPid find_worker(GPid program)
{
    g_autofree char *tasks = g_strdup_printf("/proc/%d/task", program);
    GDir *dir = g_dir_open(tasks, 0, NULL);
    const char *task;
    GPid found = 0;

    while ((task = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(tasks, task, "children", NULL);
        g_autofree char *children = NULL;
        GPid pid = 0;

        if (g_file_get_contents(path, &children, NULL, NULL))
            pid = (GPid)strtol(children, NULL, 10);
        g_assert_true(!pid || !found);
        found = pid ? pid : found;
    }
    g_dir_close(dir);
    g_assert_cmpint(found, >, 0);
    return found;
}

static void test_killed(void)
{
    GPid pid;

    open_all();
    pid = start_holding("hold");
    g_assert_cmpint(live_status(&kit_live, "a", "vram_used"), >=, 32 * MIB);
    kill(pid, SIGKILL);
    program_await(pid, SIGKILL);
    close_all();
}

/* A script's next program has all memory: the one before it has ended after its worker, which here
 * ends slowly. */
static void test_end_is_awaited(void)
{
    g_autofree char *ended = NULL, *after = NULL;

    open_all();
    ended = g_build_filename(kit_live.root, "ended", NULL);
    after = g_strconcat("sleep 0.2; echo >", ended, NULL);
    vm_program_set_worker(after);
    program_await(start_client("limit"), 0);
    g_assert_true(g_file_test(ended, G_FILE_TEST_EXISTS));
    close_all();
}

static void run_suspend(const char *verb, GPid worker)
{
    g_autofree char *line = g_strdup_printf(CLIENTS_DIR "/vgpu-suspend %s %d", verb, worker);
    int status;

    g_assert_true(g_spawn_command_line_sync(line, NULL, NULL, &status, NULL));
    g_assert_cmpint(status, ==, 0);
}

/*
 * What its worker has leaves the card, and the program waits in its call until it is there again.
 * No other test may look at the card: a process keeps the first one that it has looked at.
 */
static void test_suspended(void)
{
    GPid pid, worker;

    open_all();
    pid = start_holding("goes-on");
    worker = find_worker(pid);
    run_suspend("suspend", worker);
    g_assert_cmpuint(kit_on_card(), ==, 0);
    kill(pid, SIGTERM);
    g_usleep(100000);
    g_assert_cmpint(waitpid(pid, NULL, WNOHANG), ==, 0);
    run_suspend("resume", worker);
    program_await(pid, 0);
    close_all();
}

/* The program is told, and lives. */
static void test_lost(void)
{
    GPid pid;

    open_all();
    pid = start_holding("lost");
    kill(find_worker(pid), SIGKILL);
    program_await(pid, 0);
    close_all();
}

/* All memory stays as it is then, and the guest's driver tells nothing. */
static void test_engine_killed(void)
{
    GPid pid;

    open_all();
    pid = start_holding("lost");
    kill(pid, SIGUSR1);
    program_await(pid, 0);
    close_all();
}

/* Its memory and its driver are gone, and no fence is signalled. */
static void test_unplugged(void)
{
    GPid pid;

    open_all();
    pid = start_holding("lost-memory");
    kill(pid, SIGUSR2);
    program_await(pid, 0);
    close_all();
}

/* Why there is no CUDA comes through, though the worker ends with it. */
static void test_unusable(void)
{
    open_all();
    g_setenv("FAKE_CUDA_HOST_MEMORY", "2", TRUE);
    program_await(start_client("unusable"), 0);
    g_unsetenv("FAKE_CUDA_HOST_MEMORY");
    close_all();
}

static void test_window_full(void)
{
    open_all();
    g_setenv("VM_WINDOW", "16", TRUE);
    g_setenv("VM_MEMORY", "anonymous", TRUE);
    program_await(start_client("window"), 0);
    close_all();
}

/* What was lent and cannot be mapped is given back, and the program goes on with the window. */
static void test_unmappable(void)
{
    open_all();
    g_setenv("VM_WINDOW", "16", TRUE);
    g_setenv("VM_MEMORY", "unmappable", TRUE);
    program_await(start_client("window"), 0);
    close_all();
}

/* Of a VM whose memory can be lent, the window is no limit. */
static void test_lent(const void *name)
{
    open_all();
    g_setenv("VM_WINDOW", "16", TRUE);
    program_await(start_client(name), 0);
    close_all();
}

/* A host that does not offer it, and a kernel without contexts: no device, and no crash. */
static void test_not_there(void)
{
    static const char *const kernels[] = {"no-cuda", "old"};

    for (size_t i = 0; i < G_N_ELEMENTS(kernels); i++) {
        open_all();
        g_setenv("VM_KERNEL", kernels[i], TRUE);
        program_await(start_client("refused"), 0);
        close_all();
    }
}

/* A guest's package may be newer than its host's: nothing is sent that the engine does not know. */
static void test_older_engine(void)
{
    open_all();
    g_setenv("VM_KERNEL", "minor-1", TRUE);
    program_await(start_client("compute"), 0);
    program_await(start_client("nvml-none"), 0);
    close_all();
}

/* Its vGPU is unplugged, or its engine killed. */
static void test_lost_nvml(const void *number)
{
    GPid pid;

    open_all();
    pid = start_holding("nvml-lost");
    kill(pid, GPOINTER_TO_INT(number));
    program_await(pid, 0);
    close_all();
}

/* What the package for VMs has to say of each of them. */
static void check_says(const char *kernel, int wanted, const char *line)
{
    char *argv[] = {(char *)REMOTE_DIR "/vgpu-guest-cuda-check", NULL};
    g_auto(GStrv) env = NULL;
    g_autofree char *said = NULL;
    int status;

    if (kernel)
        g_setenv("VM_KERNEL", kernel, TRUE);
    env = vm_program_environment(g_get_environ());
    g_assert_true(g_spawn_sync(NULL, argv, env, 0, NULL, NULL, &said, NULL, &status, NULL));
    g_test_message("%s", said);
    g_assert_cmpint(status, ==, wanted);
    g_assert_nonnull(strstr(said, line));
}

static void test_check(void)
{
    open_all();
    check_says(NULL, 0, "/dev/dri/renderD128: a vGPU with CUDA, version 1.3, 1024 MiB of window\n");
    check_says(NULL, 0, ", 64 MiB\nlibnvidia-ml.so.1: ");
    check_says(NULL, 0, "\nCUDA works in this VM\n");
    check_says(NULL, 0, "/libnvidia-ml.so.1\nNVML: driver ");
    check_says("minor-1", 0, "NVML: error 9; its host has none for VMs\n");
    check_says("no-cuda", 256, "its host does not offer it");
    check_says("no-cuda", 256, "cuInit: error 100;");
    check_says("old", 256, "Linux 5.16 or newer");
    close_all();
}

/* Of several vGPUs, the one that is named, or none. */
static void test_named_node(void)
{
    open_all();
    g_setenv("VGPU_CUDA_NODE", "/dev/dri/renderD128", TRUE);
    program_await(start_client("compute"), 0);
    g_setenv("VGPU_CUDA_NODE", "/dev/dri/renderD129", TRUE);
    program_await(start_client("refused"), 0);
    g_setenv("VGPU_CUDA_NODE", "/dev/null", TRUE);
    program_await(start_client("refused"), 0);
    g_unsetenv("VGPU_CUDA_NODE");
    close_all();
}

static void add_case(const char *name)
{
    g_autofree char *path = g_strconcat("/vm/", name, NULL);

    g_test_add_data_func(path, name, test_case);
}

int main(int argc, char **argv)
{
    /* What the way to the worker matters for. The others are as in test-remote: -m slow. */
    static const char *const cases[] = {
        "compute",  "limit",   "beyond-memory", "threads",    "callbacks", "waiting",    "posted",
        "blocking", "managed", "forked",        "own-memory", "no-files",  "own-faults", "nvml-vm"};
    static const char *const others[] = {
        "large",           "objects",    "graphs", "order",      "facts", "rows",
        "captured-copies", "structures", "nodes",  "copy-forms", "links"};

    g_test_init(&argc, &argv, NULL);
    g_setenv("ASAN_OPTIONS", "detect_leaks=0", FALSE);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        add_case(cases[i]);
    for (size_t i = 0; g_test_slow() && i < G_N_ELEMENTS(others); i++)
        add_case(others[i]);
    g_test_add_func("/vm/killed", test_killed);
    g_test_add_func("/vm/end-is-awaited", test_end_is_awaited);
    g_test_add_func("/vm/suspended", test_suspended);
    g_test_add_func("/vm/lost", test_lost);
    g_test_add_func("/vm/engine-killed", test_engine_killed);
    g_test_add_func("/vm/unplugged", test_unplugged);
    g_test_add_func("/vm/unusable", test_unusable);
    g_test_add_func("/vm/window-full", test_window_full);
    g_test_add_func("/vm/unmappable", test_unmappable);
    g_test_add_data_func("/vm/lent", "lent", test_lent);
    g_test_add_data_func("/vm/pinned-of-ended", "pinned-of-ended", test_lent);
    g_test_add_func("/vm/not-there", test_not_there);
    g_test_add_func("/vm/older-engine", test_older_engine);
    g_test_add_data_func("/vm/nvml-unplugged", GINT_TO_POINTER(SIGUSR2), test_lost_nvml);
    g_test_add_data_func("/vm/nvml-engine-killed", GINT_TO_POINTER(SIGUSR1), test_lost_nvml);
    g_test_add_func("/vm/check", test_check);
    g_test_add_func("/vm/named-node", test_named_node);
    return g_test_run();
}
