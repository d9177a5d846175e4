// SPDX-License-Identifier: MIT
#include "remote/server.h"

#include "kit.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static GPid listener;
static char *path;

GPid server_start_worker(const char *option, const char *value)
{
    char *argv[] = {(char *)REMOTE_WORKER,
                    (char *)option,
                    (char *)value,
                    (char *)"--library",
                    (char *)PLAIN_DIR "/libcuda.so.1",
                    NULL};
    GError *error = NULL;
    GPid pid;

    g_spawn_async(NULL, argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_LEAVE_DESCRIPTORS_OPEN,
                  NULL, NULL, &pid, &error);
    g_assert_no_error(error);
    return pid;
}

void server_open(void)
{
    g_setenv("VGPU_GOVERNOR_REQUIRED", "1", TRUE);
    path = g_build_filename(kit_live.root, "cuda.sock", NULL);
    listener = server_start_worker("--listen", path);
    while (access(path, F_OK))
        g_usleep(10000);
}

void server_close(void)
{
    kill(listener, SIGTERM);
    waitpid(listener, NULL, 0);
    g_clear_pointer(&path, g_free);
    g_unsetenv("VGPU_GOVERNOR_REQUIRED");
}

char **server_environment(char **env)
{
    const char *libraries = g_environ_getenv(env, "LD_LIBRARY_PATH");
    g_autofree char *with = g_strconcat(REMOTE_DIR, libraries ? ":" : "", libraries, NULL);

    env = g_environ_setenv(env, "LD_LIBRARY_PATH", with, TRUE);
    env = g_environ_setenv(env, "VGPU_CUDA_SOCKET", path, TRUE);
    env = g_environ_unsetenv(env, "VGPU_GOVERNOR_REQUIRED");
    return g_environ_unsetenv(env, "VGPU_GOVERNOR_SLICES");
}

/* Those whose parent the listener is. */
void server_kill_workers(void)
{
    g_autofree char *file = g_strdup_printf("/proc/%d/task/%d/children", listener, listener);
    g_autofree char *children = NULL;

    g_assert_true(g_file_get_contents(file, &children, NULL, NULL));
    for (char *at = children; *at;) {
        pid_t pid = (pid_t)strtol(at, &at, 10);

        if (pid)
            kill(pid, SIGKILL);
        at += strspn(at, " ");
    }
}
