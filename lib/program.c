/* SPDX-License-Identifier: MIT */
#include "lib/program.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* After a kill, until nobody waits any longer: a program that the kernel holds up does not die. */
#define GRACE_SECONDS 1

/**
 * Run - a program that runs
 * @wait: for its end and its output
 * @failure: it could not be started
 */
typedef struct {
    char *line;
    guint seconds;
    GSubprocess *process;
    GCancellable *wait;
    GCancellable *cancellable;
    gulong cancelled;
    GSource *timer;
    gboolean timed_out;
    gboolean own_output;
    GError *failure;
    ProgramFunc func;
    void *data;
} Run;

static void clear_timer(Run *run)
{
    if (run->timer) {
        g_source_destroy(run->timer);
        g_clear_pointer(&run->timer, g_source_unref);
    }
}

static void run_free(Run *run)
{
    clear_timer(run);
    g_cancellable_disconnect(run->cancellable, run->cancelled);
    g_clear_object(&run->cancellable);
    g_clear_object(&run->wait);
    g_clear_object(&run->process);
    g_clear_error(&run->failure);
    g_free(run->line);
    g_free(run);
}

static void tell_output(Run *run, const char *output, const GError *error)
{
    run->func(error ? NULL : output ? output : "", error, run->data);
    run_free(run);
}

/* The lines of @text as one; NULL: there are none. */
static char *one_line(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);
    g_autoptr(GString) said = g_string_new(NULL);

    for (guint i = 0; lines[i]; i++) {
        const char *line = g_strstrip(lines[i]);

        if (*line)
            g_string_append_printf(said, "%s%s", said->len ? "; " : "", line);
    }
    return g_string_free(g_steal_pointer(&said), said->len == 0);
}

/* Some programs write their errors to standard output. */
static GError *failure_of(const Run *run, const char *output, const char *errors)
{
    g_autofree char *said = one_line(errors);

    if (!said)
        said = one_line(output);
    if (!said && run->own_output)
        said = g_subprocess_get_if_exited(run->process)
                   ? g_strdup_printf("exit status %d", g_subprocess_get_exit_status(run->process))
                   : g_strdup_printf("signal %d", g_subprocess_get_term_sig(run->process));
    return g_error_new(G_IO_ERROR, G_IO_ERROR_FAILED, "\"%s\" failed: %s", run->line,
                       said ? said : "it does not say why");
}

static void program_ended(GObject *process, GAsyncResult *answer, void *data)
{
    Run *run = data;
    g_autofree char *output = NULL;
    g_autofree char *errors = NULL;
    g_autoptr(GError) error = NULL;
    gboolean known = g_subprocess_communicate_utf8_finish(G_SUBPROCESS(process), answer, &output,
                                                          &errors, &error);

    if (run->timed_out) {
        g_clear_error(&error);
        error =
            g_error_new(G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                        "\"%s\" did not end in %u seconds and was killed", run->line, run->seconds);
    } else if (!known) {
        g_prefix_error(&error, "\"%s\" failed: ", run->line);
    } else if (!g_subprocess_get_successful(run->process)) {
        error = failure_of(run, output, errors);
    }
    tell_output(run, output, error);
}

static void set_timer(Run *run, guint seconds, GSourceFunc func)
{
    clear_timer(run);
    run->timer = g_timeout_source_new_seconds(seconds);
    g_source_set_callback(run->timer, func, run, NULL);
    g_source_attach(run->timer, g_main_context_get_thread_default());
}

/* Its children may hold its output open for longer. */
static gboolean give_up(void *data)
{
    const Run *run = data;

    g_cancellable_cancel(run->wait);
    return G_SOURCE_REMOVE;
}

static gboolean too_long(void *data)
{
    Run *run = data;

    run->timed_out = TRUE;
    g_subprocess_force_exit(run->process);
    set_timer(run, GRACE_SECONDS, give_up);
    return G_SOURCE_REMOVE;
}

static void kill_process(GCancellable *cancellable, void *process)
{
    (void)cancellable;
    g_subprocess_force_exit(process);
}

/* Never from within program_start(): its caller does not expect the answer then. */
static gboolean tell_not_started(void *data)
{
    Run *run = data;

    tell_output(run, NULL, run->failure);
    return G_SOURCE_REMOVE;
}

/* A file in memory: writing to a pipe fails if the program ends without reading it. */
static gboolean set_input(GSubprocessLauncher *launcher, const char *text, GError **error)
{
    size_t length = strlen(text);
    int file = memfd_create("input", MFD_CLOEXEC);

    if (file >= 0)
        g_subprocess_launcher_take_stdin_fd(launcher, file);
    if (file >= 0 && pwrite(file, text, length, 0) == (ssize_t)length)
        return TRUE;
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "its input can't be stored (%s)",
                g_strerror(errno));
    return FALSE;
}

/* This process's limits of open files as they were. */
static struct rlimit files_before;
static gboolean files_raised;

void program_raise_files(void)
{
    struct rlimit limit;

    if (files_raised || getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    files_before = limit;
    limit.rlim_cur = limit.rlim_max;
    files_raised = setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/* In the child, between fork() and exec(). */
static void restore_files(void *data)
{
    (void)data;
    setrlimit(RLIMIT_NOFILE, &files_before);
}

GSubprocessLauncher *program_launcher(GSubprocessFlags flags)
{
    GSubprocessLauncher *launcher = g_subprocess_launcher_new(flags);

    if (files_raised)
        g_subprocess_launcher_set_child_setup(launcher, restore_files, NULL, NULL);
    return launcher;
}

static GSubprocess *spawn_program(const Program *program, GError **error)
{
    g_autoptr(GSubprocessLauncher) launcher = program_launcher(
        program->own_output ? G_SUBPROCESS_FLAGS_NONE
                            : G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE);

    if (program->input && !set_input(launcher, program->input, error))
        return NULL;
    for (guint i = 0; program->environment && program->environment[i]; i++) {
        g_auto(GStrv) pair = g_strsplit(program->environment[i], "=", 2);

        g_subprocess_launcher_setenv(launcher, pair[0], pair[1], TRUE);
    }
    return g_subprocess_launcher_spawnv(launcher, program->argv, error);
}

void program_start(const Program *program, GCancellable *cancellable, ProgramFunc func, void *data)
{
    Run *run = g_new0(Run, 1);

    run->line = g_strjoinv(" ", (char **)program->argv);
    run->seconds = program->seconds;
    run->own_output = program->own_output;
    run->func = func;
    run->data = data;
    run->process = spawn_program(program, &run->failure);
    if (!run->process) {
        g_autoptr(GSource) source = g_idle_source_new();

        g_prefix_error(&run->failure, "\"%s\" can't be run: ", run->line);
        g_source_set_callback(source, tell_not_started, run, NULL);
        g_source_attach(source, g_main_context_get_thread_default());
        return;
    }
    run->wait = g_cancellable_new();
    set_timer(run, program->seconds, too_long);
    if (cancellable) {
        run->cancellable = g_object_ref(cancellable);
        run->cancelled = g_cancellable_connect(cancellable, G_CALLBACK(kill_process),
                                               g_object_ref(run->process), g_object_unref);
    }
    g_subprocess_communicate_utf8_async(run->process, NULL, run->wait, program_ended, run);
}

typedef struct {
    char *output;
    GError *error;
    gboolean over;
} Answer;

static void take_answer(const char *output, const GError *error, void *data)
{
    Answer *answer = data;

    answer->output = g_strdup(output);
    answer->error = error ? g_error_copy(error) : NULL;
    answer->over = TRUE;
}

gboolean program_run(const Program *program, char **output, GError **error)
{
    g_autoptr(GMainContext) context = g_main_context_new();
    Answer answer = {0};

    g_main_context_push_thread_default(context);
    program_start(program, NULL, take_answer, &answer);
    while (!answer.over)
        g_main_context_iteration(context, TRUE);
    g_main_context_pop_thread_default(context);
    if (answer.error) {
        g_propagate_error(error, answer.error);
        return FALSE;
    }
    if (output)
        *output = g_steal_pointer(&answer.output);
    g_free(answer.output);
    return TRUE;
}
