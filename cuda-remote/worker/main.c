// SPDX-License-Identifier: MIT
/* vgpu-cuda-worker --fd NUMBER [--confined] [--vm] | --listen PATH [--library PATH] */
#include "worker.h"

#include "control_loop.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static int log_fd = STDERR_FILENO;

void worker_say(const char *format, ...)
{
    char text[512];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    dprintf(log_fd, "vgpu-cuda-worker: %s\n", text);
}

/*
 * What kernels print, and what the driver says of them, is the program's, and has no place in the
 * host's log. One that is not confined is a test's: its standard error is where sanitizers report.
 */
static bool separate_log(bool is_confined)
{
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, WORKER_LOG_FD);

    if (fd >= 0)
        log_fd = fd;
    return fd >= 0 && output_begin(is_confined);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"fd", required_argument, NULL, 'f'},
                                            {"listen", required_argument, NULL, 's'},
                                            {"library", required_argument, NULL, 'l'},
                                            {"confined", no_argument, NULL, 'c'},
                                            {"vm", no_argument, NULL, 'm'},
                                            {"version", no_argument, NULL, 'v'},
                                            {0}};
    const char *library = VGPU_CUDA_DOOR, *path = NULL;
    enum control_result result;
    bool is_confined = false, is_of_vm = false;
    int fd = -1, option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'f')
            fd = atoi(optarg);
        else if (option == 's')
            path = optarg;
        else if (option == 'l')
            library = optarg;
        else if (option == 'c')
            is_confined = true;
        else if (option == 'm')
            is_of_vm = true;
        else if (option == 'v')
            return printf("vgpu-cuda-worker %s\n", VGPU_VERSION) < 0;
        else
            return 2;
    }
    if ((fd < 0) == !path || optind < argc) {
        worker_say("usage: vgpu-cuda-worker --fd NUMBER [--confined] [--vm] | --listen PATH "
                   "[--library PATH]");
        return 2;
    }
    if (path)
        return control_listen(path, library);
    prctl(PR_SET_DUMPABLE, 0);
    if (!separate_log(is_confined) || (is_confined && !worker_confine()))
        return 1;
    if (nvml_is_asked(fd))
        _exit(nvml_serve(fd, library));
    do
        result = control_welcome_program(fd, library);
    while (result == CONTROL_OCCUPIED);
    while (result == CONTROL_OK && control_serve(fd, is_of_vm))
        ;
    /* At once: the driver gives back what a process had when it ends, whatever its threads do. */
    _exit(result == CONTROL_OK ? 0 : 1);
}
