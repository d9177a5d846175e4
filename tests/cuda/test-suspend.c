// SPDX-License-Identifier: MIT
/*
 * vgpu-suspend over the fake card: what two processes have leaves the card and comes back, and if
 * one of them fails half of the way, both are what they were. Nothing comes back to a card without
 * room. What counts is the card's memory and whether the processes go on.
 */
#include "kit.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define EACH (64 * MIB)

/* Calls that each process has made; of a third one, which fills the card, whether it does. */
static _Atomic unsigned int *calls;
static int pids[2];

static void hold(unsigned int number)
{
    CUdeviceptr at;
    size_t free;

    kit_context();
    ok(cuMemAlloc_v2(&at, EACH));
    for (;;) {
        ok(cuMemGetInfo_v2(&free, NULL));
        calls[number]++;
        g_usleep(1000);
    }
}

static void hold_first(void)
{
    hold(0);
}

static void hold_second(void)
{
    hold(1);
}

/* In @ms at most. Whether it does is known at once, that it does not only in the end. */
static bool goes_on(unsigned int number, unsigned int ms)
{
    unsigned int before = calls[number];

    for (unsigned int i = 0; i < ms; i++) {
        g_usleep(1000);
        if (calls[number] > before + 3)
            return true;
    }
    return false;
}

#define LONG  20000
#define SHORT 100

static void assert_running(void)
{
    g_assert_true(goes_on(0, LONG) && goes_on(1, LONG));
    g_assert_cmpuint(kit_on_card(), ==, 2 * EACH);
}

static void assert_suspended(void)
{
    /* A call may be on its way out. */
    g_usleep(10000);
    g_assert_false(goes_on(0, SHORT) || goes_on(1, SHORT));
    g_assert_cmpuint(kit_on_card(), ==, 0);
}

/* @options: before the verb. Exit status; what it says must have @words. */
static int run(const char *options, const char *verb, const char *words)
{
    g_autofree char *line =
        g_strdup_printf(CLIENTS_DIR "/vgpu-suspend %s %s %d %d", options, verb, pids[0], pids[1]);
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

/* The second process is the one with which @step fails. */
static int run_failing(const char *step, const char *options, const char *verb, const char *words)
{
    g_autofree char *name = g_strconcat("FAKE_CUDA_", step, NULL);
    g_autofree char *pid = g_strdup_printf("%d", pids[1]);
    int status;

    g_setenv(name, pid, TRUE);
    status = run(options, verb, words);
    g_unsetenv(name);
    return status;
}

/* On the card that this process has looked at. */
static void open_two(void)
{
    calls[0] = calls[1] = 0;
    pids[0] = kit_pid(kit_start(hold_first));
    pids[1] = kit_pid(kit_start(hold_second));
    while (!calls[0] || !calls[1])
        g_usleep(1000);
}

/* Field 22 of its stat, in ticks since boot. */
static guint64 started(int pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/stat", pid);
    g_autofree char *text = NULL;
    g_auto(GStrv) fields = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    fields = g_strsplit(strrchr(text, ')'), " ", -1);
    return g_ascii_strtoull(fields[20], NULL, 10);
}

/* The processes, as if they had begun so much later. */
static int run_end(unsigned int later)
{
    g_autofree char *line = g_strdup_printf(
        CLIENTS_DIR "/vgpu-suspend end %d:%" G_GUINT64_FORMAT " %d:%" G_GUINT64_FORMAT, pids[0],
        started(pids[0]) + later, pids[1], started(pids[1]) + later);
    g_autoptr(GError) error = NULL;
    int status;

    g_spawn_command_line_sync(line, NULL, NULL, &status, &error);
    g_assert_no_error(error);
    return WEXITSTATUS(status);
}

static void close_two(void)
{
    kit_kill_all();
    g_assert_cmpuint(kit_on_card(), ==, 0);
}

static void test_there_and_back(void)
{
    open_two();
    assert_running();
    g_assert_cmpint(run("", "suspend", "suspended"), ==, 0);
    assert_suspended();
    g_assert_cmpint(run("", "suspend", "suspended"), ==, 0);
    g_assert_cmpint(run("", "state", "suspended"), ==, 0);
    g_assert_cmpint(run("", "resume", "running"), ==, 0);
    assert_running();
    g_assert_cmpint(run("", "resume", "running"), ==, 0);
    assert_running();
    close_two();
}

/* One that began at another time is another one; one that has ended is no failure. */
static void test_end(void)
{
    open_two();
    g_assert_cmpint(run_end(1), ==, 0);
    assert_running();
    g_assert_cmpint(run_end(0), ==, 0);
    g_assert_false(goes_on(0, SHORT) || goes_on(1, SHORT));
    g_assert_cmpint(run_end(0), ==, 0);
    g_assert_cmpint(run("", "end", "usage: "), ==, 2);
    close_two();
}

static void test_way_back(void)
{
    open_two();
    g_assert_cmpint(run_failing("FAIL_LOCK", "", "suspend", "cannot lock"), ==, 1);
    assert_running();
    g_assert_cmpint(run_failing("FAIL_CHECKPOINT", "", "suspend", "cannot suspend"), ==, 1);
    assert_running();
    g_assert_cmpint(run("", "suspend", "suspended"), ==, 0);
    g_assert_cmpint(run_failing("FAIL_RESTORE", "", "resume", "cannot resume"), ==, 1);
    assert_suspended();
    g_assert_cmpint(run("", "resume", "running"), ==, 0);
    assert_running();
    close_two();
}

/* Not all are as before, and it says so. The next call finds one of them running. */
static void test_torn(void)
{
    open_two();
    g_assert_cmpint(run_failing("FAIL_UNLOCK", "", "suspend", "suspended"), ==, 0);
    g_assert_cmpint(run_failing("FAIL_UNLOCK", "", "resume", "cannot unlock"), ==, 3);
    g_assert_true(goes_on(0, LONG));
    g_assert_false(goes_on(1, SHORT));
    g_assert_cmpint(run("", "state", "locked"), ==, 0);
    g_assert_cmpint(run("", "resume", "running"), ==, 0);
    assert_running();
    close_two();
}

static void test_limits(void)
{
    gint64 from;

    open_two();
    g_assert_cmpint(run("--bytes 1125899906842624", "suspend", "MiB of memory available"), ==, 1);
    assert_running();
    from = g_get_monotonic_time();
    /* The first is back; what the second does nobody knows. */
    g_assert_cmpint(run_failing("HANG_CHECKPOINT", "--limit 300", "suspend", "has not ended"), ==,
                    3);
    g_assert_cmpint(g_get_monotonic_time() - from, <, 2500000);
    g_assert_true(goes_on(0, LONG));
    close_two();
}

#define FILLER 2

/* All of the card but @left bytes. */
static void fill(uint64_t left)
{
    size_t free;
    CUdeviceptr at;

    kit_context();
    ok(cuMemGetInfo_v2(&free, NULL));
    ok(cuMemAlloc_v2(&at, free - left));
    calls[FILLER] = 1;
    while (calls[FILLER])
        g_usleep(1000);
}

static void fill_all(void)
{
    fill(0);
}

static void fill_all_but_one(void)
{
    fill(EACH);
}

static unsigned int open_filler(void (*filler)(void))
{
    unsigned int number = kit_start(filler);

    while (!calls[FILLER])
        g_usleep(1000);
    return number;
}

static void close_filler(unsigned int number)
{
    calls[FILLER] = 0;
    kit_await(number);
}

#define ROOM "--gpu 0000:3b:00.0 --bytes 134217728"

/* The driver would lose a process that it brings back to a card without room. */
static void test_full_card(void)
{
    unsigned int filler;

    open_two();
    g_assert_cmpint(run(ROOM, "suspend", "suspended"), ==, 0);
    filler = open_filler(fill_all);
    g_assert_cmpint(run(ROOM, "resume", "GPU 0000:3b:00.0 has 0 MiB of free memory, and 131 MiB"),
                    ==, 1);
    close_filler(filler);
    assert_suspended();
    /* There is room for one of them only: all or none. */
    filler = open_filler(fill_all_but_one);
    g_assert_cmpint(run(ROOM, "resume", "has 64 MiB of free memory"), ==, 1);
    close_filler(filler);
    assert_suspended();
    g_assert_cmpint(run(ROOM, "resume", "running"), ==, 0);
    assert_running();
    close_two();
}

/* Nor by the way back of a suspend that has failed. */
static void test_full_card_on_the_way_back(void)
{
    const char *more = "--gpu 0000:3b:00.0 --bytes 268435456";
    unsigned int filler;

    open_two();
    filler = open_filler(fill_all);
    g_assert_cmpint(run_failing("FAIL_CHECKPOINT", more, "suspend", "has 64 MiB of free memory"),
                    ==, 3);
    g_assert_true(goes_on(1, LONG));
    g_assert_false(goes_on(0, SHORT));
    close_filler(filler);
    g_assert_cmpint(run(ROOM, "resume", "running"), ==, 0);
    assert_running();
    close_two();
}

static void test_gpu_refused(void)
{
    open_two();
    g_assert_cmpint(run("--gpu 0000:ff:00.0", "suspend", "NVML does not find GPU 0000:ff:00.0"), ==,
                    1);
    g_setenv("RUNTIME_DIRECTORY", "/no/such", TRUE);
    g_assert_cmpint(run(ROOM, "suspend", "/no/such/0000:3b:00.0 cannot be opened"), ==, 1);
    g_setenv("RUNTIME_DIRECTORY", kit_live.root, TRUE);
    assert_running();
    close_two();
}

static void test_others(void)
{
    open_two();
    g_assert_cmpint(run("", "suspend", "suspended"), ==, 0);
    g_assert_cmpint(run("", "suspend 1", "process 1: it is unknown"), ==, 1);
    g_assert_cmpint(run("", "frown", "usage"), ==, 2);
    g_assert_cmpint(run("", "resume 1", "1 unknown"), ==, 0);
    assert_running();
    close_two();
}

int main(int argc, char **argv)
{
    int status;

    g_test_init(&argc, &argv, NULL);
    calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_test_add_func("/suspend/there-and-back", test_there_and_back);
    g_test_add_func("/suspend/end", test_end);
    g_test_add_func("/suspend/way-back", test_way_back);
    g_test_add_func("/suspend/torn", test_torn);
    g_test_add_func("/suspend/limits", test_limits);
    g_test_add_func("/suspend/full-card", test_full_card);
    g_test_add_func("/suspend/full-card-on-the-way-back", test_full_card_on_the_way_back);
    g_test_add_func("/suspend/gpu-refused", test_gpu_refused);
    g_test_add_func("/suspend/others", test_others);
    kit_open(0);
    g_setenv("RUNTIME_DIRECTORY", kit_live.root, TRUE);
    status = g_test_run();
    kit_close();
    return status;
}
