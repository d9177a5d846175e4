/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/health/pressure_command.h"

#include <gio/gio.h>

typedef struct {
    char *command;
    GSubprocess *process;
    guint timeout;
} Run;

static gboolean too_long(void *data)
{
    Run *run = data;

    run->timeout = 0;
    g_subprocess_force_exit(run->process);
    return G_SOURCE_REMOVE;
}

static void ended(GObject *process, GAsyncResult *answer, void *data)
{
    Run *run = data;
    g_autoptr(GError) error = NULL;
    gboolean in_time = run->timeout != 0;

    if (!in_time)
        g_message("pressure-command=%s was killed after %d seconds", run->command,
                  PRESSURE_COMMAND_S);
    else if (!g_subprocess_wait_check_finish(G_SUBPROCESS(process), answer, &error))
        g_message("pressure-command=%s: %s", run->command, error->message);
    else
        g_message("pressure-command=%s has ended well", run->command);
    g_clear_handle_id(&run->timeout, g_source_remove);
    g_object_unref(run->process);
    g_free(run->command);
    g_free(run);
}

static void set_number(GSubprocessLauncher *launcher, const char *name, guint64 number)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, number);

    g_subprocess_launcher_setenv(launcher, name, text, TRUE);
}

void pressure_command_run(const char *command, const char *gpu, guint64 free, guint64 mark,
                          char *const *vgpus)
{
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_NONE);
    g_autofree char *list = g_strjoinv(" ", (char **)vgpus);
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) argv = NULL;
    Run *run;

    g_subprocess_launcher_setenv(launcher, "GPU", gpu, TRUE);
    g_subprocess_launcher_setenv(launcher, "VGPUS", list, TRUE);
    set_number(launcher, "FREE", free);
    set_number(launcher, "MARK", mark);
    if (!g_shell_parse_argv(command, NULL, &argv, &error)) {
        g_message("pressure-command=%s: %s", command, error->message);
        return;
    }
    run = g_new0(Run, 1);
    run->process = g_subprocess_launcher_spawnv(launcher, (const char *const *)argv, &error);
    if (!run->process) {
        g_message("pressure-command=%s: %s", command, error->message);
        g_free(run);
        return;
    }
    run->command = g_strdup(command);
    run->timeout = g_timeout_add_seconds(PRESSURE_COMMAND_S, too_long, run);
    g_subprocess_wait_check_async(run->process, NULL, ended, run);
}
