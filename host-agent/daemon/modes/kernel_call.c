/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/kernel_call.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/bus.h"

/* Drivers of a big card need tens of seconds. */
#define RUN_SECONDS 120

gboolean kernel_write(const char *path, const char *text, GError **error)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t written = fd < 0 ? -1 : write(fd, text, strlen(text));
    int code = errno;

    if (fd >= 0)
        close(fd);
    if (written >= 0)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                "\"%s\" can't be written to %s: %s; the kernel log may say more (dmesg)", text,
                path, g_strerror(code));
    return FALSE;
}

/**
 * Run - a program to wait for
 * @over: it has ended, or is no longer waited for
 */
typedef struct {
    GSubprocess *process;
    GCancellable *patience;
    char *said;
    gboolean over;
} Run;

static void ended(GObject *process, GAsyncResult *answer, void *data)
{
    Run *run = data;

    g_subprocess_communicate_utf8_finish(G_SUBPROCESS(process), answer, &run->said, NULL, NULL);
    run->over = TRUE;
}

/* Its children may hold its output open for longer. */
static gboolean too_long(void *data)
{
    const Run *run = data;

    g_subprocess_force_exit(run->process);
    g_cancellable_cancel(run->patience);
    return G_SOURCE_REMOVE;
}

/* FALSE: it took longer. No source of the main loop runs meanwhile. */
static gboolean wait_for(Run *run, guint seconds)
{
    g_autoptr(GMainContext) context = g_main_context_new();
    g_autoptr(GSource) timer = g_timeout_source_new_seconds(seconds);

    run->patience = g_cancellable_new();
    g_main_context_push_thread_default(context);
    g_source_set_callback(timer, too_long, run, NULL);
    g_source_attach(timer, context);
    g_subprocess_communicate_utf8_async(run->process, NULL, run->patience, ended, run);
    while (!run->over)
        g_main_context_iteration(context, TRUE);
    g_source_destroy(timer);
    g_main_context_pop_thread_default(context);
    return !g_cancellable_is_cancelled(run->patience);
}

static gboolean judge(const Run *run, const char *line, gboolean in_time, guint seconds,
                      GError **error)
{
    if (in_time && g_subprocess_get_successful(run->process))
        return TRUE;
    if (!in_time)
        g_set_error(
            error, AGENT_ERROR, AGENT_ERROR_FAILED,
            "\"%s\" did not end in %u seconds and was killed; run it yourself to see what it waits "
            "for, or read the kernel log (dmesg)",
            line, seconds);
    else
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED, "\"%s\" failed: %s", line,
                    run->said && *run->said ? g_strstrip(run->said) : "it does not say why");
    return FALSE;
}

gboolean kernel_run_within(guint seconds, const char *const *argv, char **output, GError **error)
{
    g_autofree char *line = g_strjoinv(" ", (char **)argv);
    g_autoptr(GError) cause = NULL;
    Run run = {.process = g_subprocess_newv(
                   argv, G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_MERGE, &cause)};
    gboolean done;

    if (!run.process) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED, "\"%s\" can't be run: %s", line,
                    cause->message);
        return FALSE;
    }
    done = judge(&run, line, wait_for(&run, seconds), seconds, error);
    if (done && output)
        *output = run.said ? g_steal_pointer(&run.said) : g_strdup("");
    g_free(run.said);
    g_object_unref(run.patience);
    g_object_unref(run.process);
    return done;
}

gboolean kernel_run(const char *const *argv, char **output, GError **error)
{
    return kernel_run_within(RUN_SECONDS, argv, output, error);
}

int kernel_hold(const char *path)
{
    return open(path, O_RDWR | O_CLOEXEC);
}
