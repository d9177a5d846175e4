/* SPDX-License-Identifier: MIT */
/* Other programs: one that works, one that fails, one that does not end. */
#include "lib/program.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <glib/gstdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/unit/host-agent/agent_on_bus.h"

#define LIMIT_S 600

static gboolean run(const char *script, char **output, GError **error)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const Program program = {.argv = argv, .seconds = LIMIT_S};

    return program_run(&program, output, error);
}

static void test_ends(void)
{
    static const char *const nowhere[] = {"/nowhere/program", NULL};
    const Program none = {.argv = nowhere, .seconds = LIMIT_S};
    g_autoptr(GError) error = NULL;
    g_autofree char *said = NULL;

    g_assert_true(run("echo one; echo two >&2", &said, &error));
    g_assert_cmpstr(said, ==, "one\n");
    g_assert_true(run("true", NULL, &error));
    g_assert_false(program_run(&none, NULL, &error));
    g_assert_cmpuint(error->domain, ==, G_SPAWN_ERROR);
    g_assert_nonnull(strstr(error->message, "\"/nowhere/program\" can't be run: "));
}

static void assert_fails(const char *script, const char *words)
{
    g_autoptr(GError) error = NULL;

    g_assert_false(run(script, NULL, &error));
    g_assert_error(error, G_IO_ERROR, G_IO_ERROR_FAILED);
    g_assert_true(g_str_has_suffix(error->message, words));
}

/* The reason is what it says, wherever it says it. */
static void test_fails(void)
{
    assert_fails("echo no >&2; echo way >&2; exit 3", "failed: no; way");
    assert_fails("echo usage; exit 1", "failed: usage");
    assert_fails("exit 1", "failed: it does not say why");
    assert_fails("kill -9 $$", "failed: it does not say why");
}

static void test_input(void)
{
    const char *const argv[] = {"sh", "-c", "cat; echo \"$WORD\"", NULL};
    const char *const environment[] = {"WORD=a=b", NULL};
    const Program program = {argv, environment, "text ", LIMIT_S, FALSE};
    g_autofree char *said = NULL;

    g_assert_true(program_run(&program, &said, NULL));
    g_assert_cmpstr(said, ==, "text a=b\n");
}

/* What it writes is not read, so only its end is known. */
static void test_own_output(void)
{
    const char *const argv[] = {"sh", "-c", "exit 3", NULL};
    const Program program = {.argv = argv, .seconds = LIMIT_S, .own_output = TRUE};
    g_autoptr(GError) error = NULL;

    g_assert_false(program_run(&program, NULL, &error));
    g_assert_true(g_str_has_suffix(error->message, "failed: exit status 3"));
}

/* Killed, although its child lives on and holds its output open. */
static void test_hangs(void)
{
    const char *const argv[] = {"sh", "-c", "echo busy; sleep 600 & sleep 600", NULL};
    const Program program = {.argv = argv, .seconds = 1};
    g_autoptr(GError) error = NULL;

    g_assert_false(program_run(&program, NULL, &error));
    g_assert_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
    g_assert_nonnull(strstr(error->message, "did not end in 1 seconds and was killed"));
}

typedef struct {
    char *failure;
    gboolean told;
} Answer;

static void answered(const char *output, const GError *error, void *data)
{
    Answer *answer = data;

    g_assert_null(output);
    answer->failure = g_strdup(error->message);
    answer->told = TRUE;
}

static gboolean is_told(gconstpointer answer)
{
    return ((const Answer *)answer)->told;
}

/* It ended before it could be sent its input: what it said counts. */
static void test_input_unread(void)
{
    g_autofree char *dir = g_dir_make_tmp("program-XXXXXX", NULL);
    g_autofree char *fifo = g_build_filename(dir, "closed", NULL);
    g_autofree char *script = g_strdup_printf("exec <&-; : >%s; echo wrong >&2; exit 3", fifo);
    const char *const argv[] = {"sh", "-c", script, NULL};
    const Program program = {.argv = argv, .input = "text", .seconds = LIMIT_S};
    Answer answer = {0};

    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    program_start(&program, NULL, answered, &answer);
    close(open(fifo, O_RDONLY | O_CLOEXEC));
    iterate_until(is_told, &answer);
    g_assert_true(g_str_has_suffix(answer.failure, "failed: wrong"));
    g_free(answer.failure);
    g_unlink(fifo);
    g_rmdir(dir);
}

/* Whoever starts it never gets the answer within the call. */
static void test_cancel(void)
{
    const char *const argv[] = {"sleep", "600", NULL};
    const char *const nowhere[] = {"/nowhere/program", NULL};
    const Program none = {.argv = nowhere, .seconds = LIMIT_S};
    const Program program = {.argv = argv, .seconds = LIMIT_S};
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    Answer killed = {0}, missing = {0};

    program_start(&none, NULL, answered, &missing);
    program_start(&program, cancellable, answered, &killed);
    g_assert_false(missing.told);
    iterate_until(is_told, &missing);
    g_cancellable_cancel(cancellable);
    g_assert_false(killed.told);
    iterate_until(is_told, &killed);
    g_assert_nonnull(strstr(killed.failure, "\"sleep 600\" failed: "));
    g_free(killed.failure);
    g_free(missing.failure);
}

/* A program that is started has the limit that this process had. */
static void test_files(void)
{
    const struct rlimit few = {.rlim_cur = 200, .rlim_max = 300};
    g_autoptr(GError) error = NULL;
    g_autofree char *said = NULL;
    struct rlimit now;

    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &few), ==, 0);
    program_raise_files();
    program_raise_files();
    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &now), ==, 0);
    g_assert_cmpuint(now.rlim_cur, ==, 300);
    g_assert_true(run("ulimit -S -n; ulimit -H -n", &said, &error));
    g_assert_cmpstr(said, ==, "200\n300\n");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/program/ends", test_ends);
    g_test_add_func("/program/fails", test_fails);
    g_test_add_func("/program/input", test_input);
    g_test_add_func("/program/input-unread", test_input_unread);
    g_test_add_func("/program/own-output", test_own_output);
    g_test_add_func("/program/hangs", test_hangs);
    g_test_add_func("/program/cancel", test_cancel);
    /* The last one: it cannot be undone. */
    g_test_add_func("/program/files", test_files);
    return g_test_run();
}
