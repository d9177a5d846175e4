// SPDX-License-Identifier: MIT
/*
 * vgpu-guard: the GPU side of a slice that a container uses through a socket. It is a program of
 * its own, and not an option of vgpu-engine: it needs no driver of ours, and profiles and units
 * tell the two apart by name.
 *
 * The order matters, as in vgpu-engine: the GPU is looked up and the socket made while all of the
 * system is visible, then the sandbox closes, and only inside it is a Vulkan driver loaded for the
 * first time.
 */
#include "exit_code.h"
#include "options.h"
#include "sandbox.h"
#include "server.h"
#include "shader_cache.h"
#include "vulkan_driver.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define GROUP "slice"

struct settings {
    char *config;
    char *gpu;
    char *socket;
    struct options common; /* of which the guard has icd, sysroot, environment, shader_cache and
                              no_landlock */
};

static void settings_clear(struct settings *settings)
{
    g_free(settings->config);
    g_free(settings->gpu);
    g_free(settings->socket);
    g_free(settings->common.icd);
    g_free(settings->common.sysroot);
    g_free(settings->common.shader_cache);
    g_strfreev(settings->common.environment);
}

static bool parse(struct settings *settings, int *argc, char ***argv, GError **error)
{
    gboolean no_landlock = FALSE;
    gboolean show_version = FALSE;
    const GOptionEntry entries[] = {
        {"config", 'c', 0, G_OPTION_ARG_FILENAME, &settings->config,
         "The GPU, by a key file with [slice] gpu=ADDRESS", "PATH"},
        {"gpu", 'g', 0, G_OPTION_ARG_STRING, &settings->gpu, "The same, without a file", "ADDRESS"},
        {"socket", 's', 0, G_OPTION_ARG_FILENAME, &settings->socket,
         "Listen on this path instead of systemd's socket", "PATH"},
        {"icd", 0, 0, G_OPTION_ARG_FILENAME, &settings->common.icd,
         "Manifest of the Vulkan driver to use; it must show only this GPU", "PATH"},
        {"setenv", 'E', 0, G_OPTION_ARG_STRING_ARRAY, &settings->common.environment,
         "Environment of the renderer, which is otherwise empty", "NAME=VALUE"},
        {"shader-cache", 0, 0, G_OPTION_ARG_FILENAME, &settings->common.shader_cache,
         "Keep compiled shaders in this directory, which nothing else uses (default: do not)",
         "PATH"},
        {"no-landlock", 0, 0, G_OPTION_ARG_NONE, &no_landlock,
         "Run without Landlock: the guard can then reach other GPUs", NULL},
        {"sysroot", 0, 0, G_OPTION_ARG_FILENAME, &settings->common.sysroot,
         "Look up sysfs and driver manifests below PATH (for tests)", "PATH"},
        {"version", 'V', 0, G_OPTION_ARG_NONE, &show_version, "Print the version", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);

    g_option_context_set_summary(context, "The GPU side of one slice that containers use through a "
                                          "socket; normally started by systemd as "
                                          "vgpu-guard@UUID.service.");
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, argc, argv, error))
        return false;
    settings->common.no_landlock = no_landlock;
    settings->common.show_version = show_version;
    if (!settings->common.sysroot)
        settings->common.sysroot = g_strdup("");
    if (*argc > 1) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "unknown argument \"%s\"",
                    (*argv)[1]);
        return false;
    }
    return true;
}

static bool read_config(struct settings *settings, GError **error)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autoptr(GError) reason = NULL;

    if (settings->gpu)
        return true;
    if (!settings->config) {
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_USAGE, "no GPU: give --config or --gpu");
        return false;
    }
    if (g_key_file_load_from_file(file, settings->config, G_KEY_FILE_NONE, &reason))
        settings->gpu = g_key_file_get_string(file, GROUP, "gpu", &reason);
    if (settings->gpu)
        return true;
    g_set_error(error, ENGINE_ERROR, EXIT_CODE_USAGE, "%s: %s; it must be [" GROUP "] gpu=ADDRESS",
                settings->config, reason->message);
    return false;
}

/* Everybody who can reach the path may connect; its directory decides who can. */
static int listen_at(const char *path, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (strlen(path) >= sizeof(address.sun_path)) {
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_USAGE, "%s: too long for a socket's path", path);
        return -1;
    }
    strcpy(address.sun_path, path);
    unlink(path);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
        chmod(path, 0666) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    g_set_error(error, ENGINE_ERROR, EXIT_CODE_USAGE, "cannot listen at %s: %s", path,
                g_strerror(errno));
    return -1;
}

static int open_socket(const struct settings *settings, GError **error)
{
    if (settings->socket)
        return listen_at(settings->socket, error);
    if (sd_listen_fds(1) == 1 &&
        sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_STREAM, 1, NULL, 0) > 0)
        return SD_LISTEN_FDS_START;
    g_set_error(error, ENGINE_ERROR, EXIT_CODE_USAGE,
                "no socket: give --socket, or start it by systemd's socket unit");
    return -1;
}

static bool serve(const struct settings *settings, int fd, GError **error)
{
    struct vulkan_driver driver;
    bool ok = vulkan_driver_enter(&driver, settings->gpu, &settings->common, error);

    if (ok) {
        g_message("GPU %s: using Vulkan driver %s", driver.gpu->name, driver.manifest);
        g_setenv("VK_DRIVER_FILES", driver.manifest, TRUE);
        sd_notifyf(0, "READY=1\nSTATUS=A slice of %s", driver.gpu->name);
        ok = server_run(fd, error);
        sd_notify(0, "STOPPING=1");
    }
    vulkan_driver_clear(&driver);
    return ok;
}

static bool run(struct settings *settings, GError **error)
{
    int fd;
    bool ok;

    if (!read_config(settings, error))
        return false;
    fd = open_socket(settings, error);
    if (fd < 0)
        return false;
    sandbox_clean_environment((const char *const *)settings->common.environment);
    shader_cache_use(settings->common.shader_cache);
    server_setup();
    ok = serve(settings, fd, error);
    close(fd);
    return ok;
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    struct settings settings = {.common.fd = -1};
    int status = EXIT_CODE_OK;

    setlocale(LC_ALL, "");
    if (parse(&settings, &argc, &argv, &error)) {
        if (settings.common.show_version)
            printf("vgpu-guard %s\n", VGPU_VERSION);
        else
            run(&settings, &error);
    }
    if (error) {
        g_printerr("vgpu-guard: %s\n", error->message);
        status = error->domain == ENGINE_ERROR ? error->code : EXIT_CODE_USAGE;
    }
    settings_clear(&settings);
    return status;
}
