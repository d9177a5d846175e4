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

static bool read_config(struct options *options, GError **error)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autoptr(GError) reason = NULL;

    if (options->gpu)
        return true;
    if (!options->config) {
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_USAGE, "no GPU: give --config or --gpu");
        return false;
    }
    if (g_key_file_load_from_file(file, options->config, G_KEY_FILE_NONE, &reason))
        options->gpu = g_key_file_get_string(file, GROUP, "gpu", &reason);
    if (options->gpu)
        return true;
    g_set_error(error, ENGINE_ERROR, EXIT_CODE_USAGE, "%s: %s; it must be [" GROUP "] gpu=ADDRESS",
                options->config, reason->message);
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

static int open_socket(const struct options *options, GError **error)
{
    if (options->socket)
        return listen_at(options->socket, error);
    if (sd_listen_fds(1) == 1 &&
        sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_STREAM, 1, NULL, 0) > 0)
        return SD_LISTEN_FDS_START;
    g_set_error(error, ENGINE_ERROR, EXIT_CODE_USAGE,
                "no socket: give --socket, or start it by systemd's socket unit");
    return -1;
}

static bool serve(const struct options *options, int fd, GError **error)
{
    struct vulkan_driver driver;
    bool ok = vulkan_driver_enter(&driver, options->gpu, options, error);

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

static bool run(struct options *options, GError **error)
{
    int fd;
    bool ok;

    if (!read_config(options, error))
        return false;
    fd = open_socket(options, error);
    if (fd < 0)
        return false;
    sandbox_clean_environment((const char *const *)options->environment);
    shader_cache_use(options->shader_cache);
    server_setup();
    ok = serve(options, fd, error);
    close(fd);
    return ok;
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    struct options options;
    int status = EXIT_CODE_OK;

    setlocale(LC_ALL, "");
    if (options_parse_guard(&options, argc, argv, &error)) {
        if (options.show_version)
            printf("vgpu-guard %s\n", VGPU_VERSION);
        else
            run(&options, &error);
    }
    if (error) {
        g_printerr("vgpu-guard: %s\n", error->message);
        status = error->domain == ENGINE_ERROR ? error->code : EXIT_CODE_USAGE;
    }
    options_clear(&options);
    return status;
}
