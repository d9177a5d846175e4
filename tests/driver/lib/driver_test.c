/* SPDX-License-Identifier: MIT */
/* The harness of the driver tests. */
#include "driver_test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel_log.h"
#include "mdev_host.h"

#define EXIT_SKIPPED    77
#define SKIP_REASON_LEN 512

typedef struct {
    DriverTestFn fn;
    unsigned limit_s;
} DriverTest;

static int kernel_log = -1;
/* Shared with the test's process, which writes it. */
static char *skip_reason;

int64_t now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

void driver_test_skip(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(skip_reason, SKIP_REASON_LEN, format, args);
    va_end(args);
    _exit(EXIT_SKIPPED);
}

static void print_file(const char *path)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return;
    lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        if (**line)
            g_printerr("#   %s\n", *line);
    }
}

/* The kernel stack of every thread of @pid. */
static void print_stacks(pid_t pid)
{
    g_autofree char *dir = g_strdup_printf("/proc/%d/task", pid);
    g_autoptr(GDir) tasks = g_dir_open(dir, 0, NULL);
    const char *task;

    while (tasks && (task = g_dir_read_name(tasks))) {
        g_autofree char *stack = g_build_filename(dir, task, "stack", NULL);

        g_printerr("# stack of %d/%s:\n", pid, task);
        print_file(stack);
    }
}

/* Orphaned children of the test's process become ours (subreaper). */
static void for_each_child(pid_t parent, void (*fn)(pid_t))
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children", parent, parent);
    g_autofree char *text = NULL;
    g_auto(GStrv) pids = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return;
    pids = g_strsplit(g_strstrip(text), " ", -1);
    for (char **pid = pids; *pid; pid++) {
        if (**pid)
            fn(atoi(*pid));
    }
}

static void print_stacks_of_tree(pid_t pid)
{
    print_stacks(pid);
    for_each_child(pid, print_stacks);
}

static void kill_one(pid_t pid)
{
    kill(pid, SIGKILL);
}

/* Kills and reaps the remaining processes; false if one cannot be killed. */
static bool reap_leftovers(void)
{
    int64_t end = now_ms() + 60 * 1000;

    for (;;) {
        for_each_child(getpid(), kill_one);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
            return true;
        if (now_ms() > end) {
            g_printerr("# a process of the test can't be killed:\n");
            for_each_child(getpid(), print_stacks);
            return false;
        }
        g_usleep(5000);
    }
}

static void run_child(const DriverTest *test, int output)
{
    /* GTest's own output on stdout would be parsed as the program's TAP. */
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    signal(SIGPIPE, SIG_IGN);
    test->fn();
    fflush(NULL);
    _exit(0);
}

/* Passes on the output of the test's processes, as TAP diagnostics; false if there is none. */
static bool print_output(int output)
{
    static GString *line;
    bool any = false;
    char buf[4096];
    ssize_t n;

    if (!line)
        line = g_string_new(NULL);
    while ((n = read(output, buf, sizeof(buf))) > 0) {
        any = true;
        for (ssize_t i = 0; i < n; i++) {
            if (buf[i] != '\n') {
                g_string_append_c(line, buf[i]);
                continue;
            }
            printf("# %s\n", g_str_has_prefix(line->str, "# ") ? line->str + 2 : line->str);
            g_string_truncate(line, 0);
        }
    }
    return any;
}

/* Waits for the test's process; -1 if it had to be killed. */
static int wait_child(pid_t pid, int output, unsigned limit_s)
{
    int64_t end = now_ms() + (int64_t)limit_s * 1000;
    int status;

    for (;;) {
        pid_t done = waitpid(pid, &status, WNOHANG);

        if (print_output(output))
            end = now_ms() + (int64_t)limit_s * 1000;
        if (done == pid)
            return status;
        if (now_ms() > end)
            break;
        g_usleep(5000);
    }
    g_printerr("# nothing was heard of it for %u s\n", limit_s);
    print_stacks_of_tree(pid);
    return -1;
}

static void report_status(int status)
{
    if (status == -1)
        g_test_message("the test hung");
    else if (WIFSIGNALED(status))
        g_test_message("ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) == EXIT_SKIPPED)
        g_test_skip(skip_reason);
    else if (WEXITSTATUS(status))
        g_test_message("exit status %d", WEXITSTATUS(status));
    if (status == -1 || WIFSIGNALED(status) ||
        (WEXITSTATUS(status) && WEXITSTATUS(status) != EXIT_SKIPPED))
        g_test_fail();
}

static void run_test(const void *data)
{
    const DriverTest *test = data;
    unsigned reports;
    bool reaped;
    int output[2];
    pid_t pid;

    skip_reason[0] = '\0';
    g_assert_cmpint(pipe2(output, O_CLOEXEC), ==, 0);
    fcntl(output[0], F_SETFL, O_NONBLOCK);
    fflush(NULL);
    pid = fork();
    g_assert_cmpint(pid, >=, 0);
    if (pid == 0)
        run_child(test, output[1]);
    close(output[1]);

    report_status(wait_child(pid, output[0], test->limit_s));
    reaped = reap_leftovers();
    print_output(output[0]);
    if (!reaped) {
        printf("Bail out! a process hangs in the kernel; what follows would say nothing\n");
        exit(1);
    }
    close(output[0]);
    if (mdev_host_cleanup(TEST_GPU_PREFIX) < 0) {
        g_test_message("what the test left can't be removed");
        g_test_fail();
    }
    reports = kernel_log_check(kernel_log);
    if (reports) {
        g_test_message("%u reports in the kernel's log", reports);
        g_test_fail();
    }
}

/* The caller's arguments, and: TAP output, and continue after a failed test. */
static void init_gtest(int argc, char **argv)
{
    char **args = g_new0(char *, (size_t)argc + 3);
    int n = 0;

    args[n++] = argv[0];
    args[n++] = g_strdup("--tap");
    args[n++] = g_strdup("-k");
    for (int i = 1; i < argc; i++)
        args[n++] = argv[i];
    g_test_init(&n, &args, NULL);
}

void driver_test_init(int argc, char **argv)
{
    init_gtest(argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);

    kernel_log = kernel_log_open();
    if (kernel_log < 0)
        g_error("/dev/kmsg: %s: these tests run as root in the rig", g_strerror(-kernel_log));
    if (!mdev_host_module_loaded())
        g_error("/dev/vgpu-control is missing: load mdev_vgpu first");
    skip_reason =
        mmap(NULL, SKIP_REASON_LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_assert_true(skip_reason != MAP_FAILED);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void driver_test_add_limit(const char *path, DriverTestFn fn, unsigned limit_s)
{
    DriverTest *test = g_new0(DriverTest, 1);

    test->fn = fn;
    test->limit_s = limit_s;
    g_test_add_data_func_full(path, test, run_test, g_free);
}

void driver_test_add(const char *path, DriverTestFn fn)
{
    driver_test_add_limit(path, fn, TEST_DEFAULT_LIMIT_S);
}

int driver_test_run(void)
{
    mdev_host_cleanup(TEST_GPU_PREFIX);
    return g_test_run();
}
