/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/polkit_agent.h"

#include <gio/gio.h>
#include <glib-unix.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#define AGENT "pkttyagent"

/* It closes the descriptor when it is registered; vgpud must not be asked before. */
static void wait_for_agent(int ready)
{
    char byte;

    while (read(ready, &byte, 1) > 0)
        ;
}

/* It does not end by itself. */
static void end_with_parent(void *data)
{
    (void)data;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

void polkit_agent_start(void)
{
    static GSubprocess *agent;
    g_autoptr(GSubprocessLauncher) launcher = NULL;
    g_autofree char *notify = NULL;
    int pipe[2];

    if (agent || geteuid() == 0 || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO) ||
        !g_unix_open_pipe(pipe, FD_CLOEXEC, NULL))
        return;
    launcher = g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDIN_INHERIT);
    g_subprocess_launcher_set_child_setup(launcher, end_with_parent, NULL, NULL);
    notify = g_strdup_printf("%d", pipe[1]);
    g_subprocess_launcher_take_fd(launcher, pipe[1], pipe[1]);
    agent = g_subprocess_launcher_spawn(launcher, NULL, AGENT, "--notify-fd", notify, "--fallback",
                                        NULL);
    g_subprocess_launcher_close(launcher);
    if (agent)
        wait_for_agent(pipe[0]);
    close(pipe[0]);
}
