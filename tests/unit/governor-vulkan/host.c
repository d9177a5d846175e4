// SPDX-License-Identifier: MIT
#include "host.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static void put(const struct host *host, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(host->root, "run/vgpu/governor/gpu", name, NULL);
    g_autofree char *folder = g_path_get_dirname(path);

    g_assert_cmpint(g_mkdir_with_parents(folder, 0700), ==, 0);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static char *socket_of(const struct host *host, const char *slice)
{
    return g_build_filename(host->root, "run/vgpu/slices", slice, "governor.sock", NULL);
}

/* The arbiter does not outlive a test that is ended. */
static void end_with_test(gpointer data)
{
    (void)data;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void host_configure(const struct host *host, const char *slice, const char *content)
{
    g_autofree char *name = g_strdup_printf("slices/%s.conf", slice);

    put(host, name, content);
}

void host_up(struct host *host, const char *const *slices)
{
    host->root = g_dir_make_tmp("governor-XXXXXX", NULL);
    g_assert_nonnull(host->root);
    put(host, "gpu.conf", "[gpu]\nvram=1073741824\npolicy=shares\n");
    for (gsize i = 0; slices[i]; i += 2)
        host_configure(host, slices[i], slices[i + 1]);

    g_autofree char *root = g_strconcat("--root=", host->root, NULL);
    const char *const command[] = {ARBITER, root, "gpu", NULL};

    g_assert_true(g_spawn_async(NULL, (char **)command, NULL, G_SPAWN_DO_NOT_REAP_CHILD,
                                end_with_test, NULL, &host->arbiter, NULL));
    for (gsize i = 0; slices[i]; i += 2) {
        g_autofree char *socket = socket_of(host, slices[i]);

        for (int j = 0; j < 500 && !g_file_test(socket, G_FILE_TEST_EXISTS); j++)
            g_usleep(10000);
    }
    g_setenv("VK_IMPLICIT_LAYER_PATH", LIVE_LAYER_DIR, TRUE);
    g_setenv("VGPU_GOVERNOR_REQUIRED", "1", TRUE);
}

void host_enter(const struct host *host, const char *slice)
{
    g_autofree char *socket = socket_of(host, slice);

    g_setenv("VGPU_GOVERNOR_SOCKET", socket, TRUE);
}

void host_down(struct host *host)
{
    const char *const command[] = {"rm", "-rf", host->root, NULL};

    kill(host->arbiter, SIGTERM);
    waitpid(host->arbiter, NULL, 0);
    g_spawn_close_pid(host->arbiter);
    g_spawn_sync(NULL, (char **)command, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL,
                 NULL);
    g_free(host->root);
}
