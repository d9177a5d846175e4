/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <glib/gstdio.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Time for a program to end when it is told to. */
#define PATIENCE_MS 3000
#define LOOK_MS     20

struct Program {
    char *name;
    GSubprocess *process;
    GDataInputStream *output;
    char *errors;
};

static void in_child(void *data)
{
    int processor = GPOINTER_TO_INT(data);
    cpu_set_t set;

    /* A group of its own, so that its children can be ended with it. */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (processor < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET((size_t)processor, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

/* timeout(1) ends it with its children; in the foreground, because the group is ours. */
static GStrv with_limit(const ProgramSpec *spec)
{
    g_autoptr(GStrvBuilder) argv = g_strv_builder_new();
    g_autofree char *limit = g_strdup_printf("%u", spec->limit_s);

    g_strv_builder_add_many(argv, "timeout", "--foreground", "-k", "5", limit, NULL);
    g_strv_builder_addv(argv, (const char **)spec->argv);
    return g_strv_builder_end(argv);
}

static char *new_file(GError **error)
{
    g_autofree char *path = NULL;
    int fd = g_file_open_tmp("vgpu-card-XXXXXX", &path, error);

    if (fd < 0)
        return NULL;
    close(fd);
    return g_steal_pointer(&path);
}

Program *program_start(const ProgramSpec *spec, GError **error)
{
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE);
    g_auto(GStrv) argv = with_limit(spec);
    g_autoptr(Program) program = g_new0(Program, 1);

    program->name = g_path_get_basename(spec->argv[0]);
    program->errors = new_file(error);
    if (!program->errors)
        return NULL;
    g_subprocess_launcher_set_environ(launcher, (char **)spec->env);
    g_subprocess_launcher_set_stderr_file_path(launcher, program->errors);
    g_subprocess_launcher_set_child_setup(launcher, in_child, GINT_TO_POINTER(spec->processor),
                                          NULL);
    program->process = g_subprocess_launcher_spawnv(launcher, (const char *const *)argv, error);
    if (!program->process) {
        g_prefix_error(error, "%s: ", program->name);
        return NULL;
    }
    program->output = g_data_input_stream_new(g_subprocess_get_stdout_pipe(program->process));
    return g_steal_pointer(&program);
}

char *program_last_words(const Program *program)
{
    g_autofree char *text = NULL;
    char *line;

    if (!g_file_get_contents(program->errors, &text, NULL, NULL) || !*g_strchomp(text))
        return g_strdup("it said nothing");
    line = strrchr(text, '\n');
    return g_strdup(line ? line + 1 : text);
}

static void set_failure(const Program *program, GError **error)
{
    g_autofree char *words = program_last_words(program);

    if (g_subprocess_get_if_signaled(program->process))
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s was ended by signal %d: %s",
                    program->name, g_subprocess_get_term_sig(program->process), words);
    else if (g_subprocess_get_exit_status(program->process) == 124)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "%s did not end in time: %s",
                    program->name, words);
    else
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: %s", program->name, words);
}

char *program_line(Program *program, GError **error)
{
    char *line = g_data_input_stream_read_line(program->output, NULL, NULL, error);

    if (!line && error && !*error) {
        g_subprocess_wait(program->process, NULL, NULL);
        set_failure(program, error);
    }
    return line;
}

gboolean program_tell(Program *program, const char *text, GError **error)
{
    GOutputStream *input = g_subprocess_get_stdin_pipe(program->process);

    return g_output_stream_write_all(input, text, strlen(text), NULL, NULL, error) &&
           g_output_stream_flush(input, NULL, error);
}

char *program_finish(Program *program, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    char buffer[4096];
    gssize length;

    while ((length = g_input_stream_read(G_INPUT_STREAM(program->output), buffer, sizeof(buffer),
                                         NULL, error)) > 0)
        g_string_append_len(text, buffer, length);
    if (length < 0 || !g_subprocess_wait(program->process, NULL, error))
        return NULL;
    if (!g_subprocess_get_successful(program->process)) {
        set_failure(program, error);
        return NULL;
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void end_process(Program *program)
{
    const char *text = g_subprocess_get_identifier(program->process);
    GPid pid = text ? (GPid)g_ascii_strtoll(text, NULL, 10) : 0;

    if (pid <= 0)
        return;
    kill(-pid, SIGTERM);
    for (int waited = 0; waited < PATIENCE_MS; waited += LOOK_MS) {
        if (kill(-pid, 0) < 0)
            break;
        g_usleep(LOOK_MS * G_TIME_SPAN_MILLISECOND);
    }
    kill(-pid, SIGKILL);
    g_subprocess_wait(program->process, NULL, NULL);
}

void program_free(Program *program)
{
    if (!program)
        return;
    if (program->process)
        end_process(program);
    if (program->errors)
        g_unlink(program->errors);
    g_clear_object(&program->output);
    g_clear_object(&program->process);
    g_free(program->errors);
    g_free(program->name);
    g_free(program);
}

char *program_run(const ProgramSpec *spec, GError **error)
{
    g_autoptr(Program) program = program_start(spec, error);

    return program ? program_finish(program, error) : NULL;
}
