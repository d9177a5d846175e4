// SPDX-License-Identifier: MIT
#include "remote/guard.h"

#include "remote/program.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GPU "0000:3b:00.0"

/* Without its driver's name it would be asked for another one's. */
static void link_driver(void)
{
    g_autofree char *link =
        g_build_filename(kit_live.root, "host/sys/bus/pci/devices/" GPU "/driver", NULL);

    g_unlink(link);
    g_assert_cmpint(symlink("../../drivers/nvidia", link), ==, 0);
}

static void write_file(const char *path, const char *text)
{
    g_autofree char *full = g_build_filename(kit_live.root, path, NULL);
    g_autofree char *folder = g_path_get_dirname(full);

    g_assert_cmpint(g_mkdir_with_parents(folder, 0755), ==, 0);
    g_assert_true(g_file_set_contents(full, text, -1, NULL));
}

static bool is_listening(const struct guard *guard)
{
    g_autofree char *log = NULL;

    return g_file_get_contents(guard->log, &log, NULL, NULL) && strstr(log, "CUDA alone");
}

struct guard guard_open(const char *slice)
{
    g_autofree char *worker = program_write_worker(NULL);
    g_autofree char *governor = live_socket(&kit_live, slice);
    struct guard guard = {.socket = g_strdup_printf("%s/cuda-%s.sock", kit_live.root, slice),
                          .vulkan = g_strdup_printf("%s/vtest-%s.sock", kit_live.root, slice),
                          .log = g_strdup_printf("%s/guard-%s.log", kit_live.root, slice)};
    g_autoptr(GStrvBuilder) words = g_strv_builder_new();
    g_auto(GStrv) argv = NULL;
    GError *error = NULL;
    int out = open(guard.log, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_APPEND, 0600);

    write_file("host/sys/bus/pci/devices/" GPU "/vendor", "0x10de\n");
    link_driver();
    write_file("host/proc/driver/nvidia/gpus/" GPU "/information", "Device Minor: \t 0\n");
    write_file("host/dev/nvidia0", "");
    write_file("host/dev/nvidiactl", "");
    g_strv_builder_add_many(words, GUARD, "--gpu=" GPU, "--no-landlock", NULL);
    g_strv_builder_take(words, g_strconcat("--sysroot=", kit_live.root, "/host", NULL));
    g_strv_builder_take(words, g_strconcat("--socket=", guard.vulkan, NULL));
    g_strv_builder_take(words, g_strconcat("--cuda-socket=", guard.socket, NULL));
    g_strv_builder_take(words, g_strconcat("--cuda-worker=", worker, NULL));
    g_strv_builder_take(words, g_strconcat("--setenv=VGPU_GOVERNOR_SOCKET=", governor, NULL));
    g_strv_builder_take(words,
                        g_strconcat("--setenv=FAKE_CUDA_CARD=", g_getenv("FAKE_CUDA_CARD"), NULL));
    g_strv_builder_add_many(words, "--setenv=VGPU_GOVERNOR=1",
                            "--setenv=FAKE_CUDA_TOTAL=8589934592", NULL);
    if (g_getenv("FAKE_CUDA_CONTENT"))
        g_strv_builder_add(words, "--setenv=FAKE_CUDA_CONTENT=1");
    argv = g_strv_builder_end(words);
    g_spawn_async_with_fds(NULL, argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, &guard.pid, -1,
                           out, out, &error);
    g_assert_no_error(error);
    close(out);
    while (!is_listening(&guard) && waitpid(guard.pid, NULL, WNOHANG) == 0)
        g_usleep(10000);
    g_assert_true(is_listening(&guard));
    return guard;
}

char *guard_log(const struct guard *guard)
{
    char *log = NULL;

    g_assert_true(g_file_get_contents(guard->log, &log, NULL, NULL));
    return log;
}

void guard_clear(struct guard *guard)
{
    g_free(guard->socket);
    g_free(guard->vulkan);
    g_free(guard->log);
}

void guard_close(struct guard *guard)
{
    g_autofree char *log = guard_log(guard);
    int status;

    g_test_message("%s", log);
    g_assert_null(strstr(log, "hangs"));
    kill(guard->pid, SIGTERM);
    g_assert_cmpint(waitpid(guard->pid, &status, 0), ==, guard->pid);
    g_assert_cmpint(status, ==, 0);
    guard_clear(guard);
}

char **guard_environment(const struct guard *guard)
{
    char **env = g_environ_setenv(g_get_environ(), "LD_LIBRARY_PATH", REMOTE_DIR, TRUE);

    env = g_environ_setenv(env, "VGPU_CUDA_SOCKET", guard->socket, TRUE);
    return g_environ_unsetenv(env, "VGPU_GOVERNOR_SLICES");
}
