// SPDX-License-Identifier: MIT
/*
 * vgpu-guard: the GPU side of a slice that a container uses through sockets. It is a program of
 * its own, and not an option of vgpu-engine: it needs no driver of ours, and profiles and units
 * tell the two apart by name.
 *
 * The order matters, as in vgpu-engine: the GPU is looked up and the socket made while all of the
 * system is visible, then the sandbox closes, and only inside it is a Vulkan driver loaded for the
 * first time.
 */
#include "cuda_alone.h"
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
static int listen_at(const char *path, int type, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

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

/* systemd's two sockets differ in their types. An older unit has the first alone. */
static bool open_sockets(const struct options *options, struct server_doors *doors, GError **error)
{
    int count;

    if (options->socket) {
        doors->vulkan = listen_at(options->socket, SOCK_STREAM, error);
        if (doors->vulkan >= 0 && options->cuda_socket)
            doors->cuda = listen_at(options->cuda_socket, SOCK_SEQPACKET, error);
        return doors->vulkan >= 0 && (doors->cuda >= 0 || !options->cuda_socket);
    }
    count = sd_listen_fds(1);
    for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + count; fd++) {
        if (sd_is_socket_unix(fd, SOCK_STREAM, 1, NULL, 0) > 0)
            doors->vulkan = fd;
        else if (sd_is_socket_unix(fd, SOCK_SEQPACKET, 1, NULL, 0) > 0)
            doors->cuda = fd;
    }
    if (doors->vulkan >= 0)
        return true;
    g_set_error(error, ENGINE_ERROR, EXIT_CODE_USAGE,
                "no socket: give --socket, or start it by systemd's socket unit");
    return false;
}

static bool enter_for_vulkan(const struct options *options, struct server_doors *doors,
                             struct vulkan_driver *driver, GError **error)
{
    if (!vulkan_driver_enter(driver, options->gpu, options, error))
        return false;
    g_message("GPU %s: using Vulkan driver %s", driver->gpu->name, driver->manifest);
    g_setenv("VK_DRIVER_FILES", driver->manifest, TRUE);
    doors->has_vulkan = true;
    if (!options->cuda_worker &&
        !g_strv_contains((const char *const *)driver->gpu->nodes, "/dev/nvidiactl"))
        doors->worker.path = NULL;
    sd_notifyf(0, "READY=1\nSTATUS=A slice of %s%s", driver->gpu->name,
               doors->worker.path ? ", with CUDA" : "");
    return true;
}

static bool serve_slice(const struct options *options, struct server_doors *doors, GError **error)
{
    const char *worker = options->cuda_worker ? options->cuda_worker : VGPU_CUDA_WORKER;
    struct vulkan_driver driver = {0};
    g_autofree char *no_vulkan = NULL;
    struct gpu *gpu;
    bool ok;

    doors->worker.is_confined = !options->no_landlock;
    if (g_file_test(worker, G_FILE_TEST_IS_EXECUTABLE)) {
        doors->worker.path = worker;
        sandbox_allow_program(worker);
        no_vulkan = cuda_alone_why(options->gpu, options);
    }
    if (!no_vulkan) {
        ok = enter_for_vulkan(options, doors, &driver, error);
    } else {
        gpu = cuda_alone_enter(options->gpu, options, error);
        ok = gpu != NULL;
        gpu_free(gpu);
    }
    if (ok && no_vulkan) {
        g_message("slice without Vulkan, with CUDA alone: %s", no_vulkan);
        sd_notifyf(0, "READY=1\nSTATUS=A slice of %s, with CUDA alone: %s", options->gpu,
                   no_vulkan);
    }
    if (ok) {
        ok = server_run(doors, error);
        sd_notify(0, "STOPPING=1");
    }
    vulkan_driver_clear(&driver);
    return ok;
}

static bool run_guard(struct options *options, GError **error)
{
    struct server_doors doors = {.vulkan = -1, .cuda = -1};
    bool ok;

    if (!read_config(options, error) || !open_sockets(options, &doors, error))
        return false;
    sandbox_clean_environment((const char *const *)options->environment);
    shader_cache_use(options->shader_cache);
    server_setup();
    ok = serve_slice(options, &doors, error);
    close(doors.vulkan);
    if (doors.cuda >= 0)
        close(doors.cuda);
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
            run_guard(&options, &error);
    }
    if (error) {
        g_printerr("vgpu-guard: %s\n", error->message);
        status = error->domain == ENGINE_ERROR ? error->code : EXIT_CODE_USAGE;
    }
    options_clear(&options);
    return status;
}
