// SPDX-License-Identifier: MIT
#include "remote/program.h"

#include "kit.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A test that fails leaves nobody behind who has its output open. */
static void end_with_test(void *data G_GNUC_UNUSED)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

GPid program_start(const char *name, char **env, int *output)
{
    char *argv[] = {(char *)REMOTE_CLIENT, (char *)name, NULL};
    GError *error = NULL;
    GPid pid;

    g_spawn_async_with_pipes(NULL, argv, env, G_SPAWN_DO_NOT_REAP_CHILD, end_with_test, NULL, &pid,
                             NULL, output, NULL, &error);
    g_assert_no_error(error);
    g_strfreev(env);
    return pid;
}

GPid program_start_holding(const char *name, char **env)
{
    char said[16] = "";
    int output;
    GPid pid = program_start(name, env, &output);

    g_assert_cmpint(read(output, said, sizeof(said) - 1), >, 0);
    g_assert_cmpstr(said, ==, "holding\n");
    close(output);
    return pid;
}

void program_await(GPid pid, int wanted)
{
    int status;

    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(status, ==, wanted);
}

char *program_write_worker(const char *after)
{
    static const char worker[] = REMOTE_WORKER " \"$@\" --library " PLAIN_DIR "/libcuda.so.1\n";
    g_autofree char *text =
        g_strconcat("#!/bin/sh\n", after ? "" : "exec ", worker, after ? after : "", "\n", NULL);
    char *path = g_build_filename(kit_live.root, "worker", NULL);

    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    g_assert_cmpint(g_chmod(path, 0755), ==, 0);
    return path;
}
