// SPDX-License-Identifier: MIT
#include "cuda_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define WORKER_FD      3
#define WORKER_FD_TEXT "3"

GStrv cuda_worker_environment(void)
{
    static const char *const without[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
                                          "VK_DRIVER_FILES"};
    GStrv environment = g_get_environ();

    for (size_t i = 0; i < G_N_ELEMENTS(without); i++)
        environment = g_environ_unsetenv(environment, without[i]);
    if (g_strcmp0(g_environ_getenv(environment, "VGPU_GOVERNOR"), "1") == 0)
        environment = g_environ_setenv(environment, "VGPU_GOVERNOR_REQUIRED", "1", TRUE);
    /* The driver would look for a cache in a home, which there is not. */
    if (!g_environ_getenv(environment, "CUDA_CACHE_PATH"))
        environment = g_environ_setenv(environment, "CUDA_CACHE_DISABLE", "1", FALSE);
    return environment;
}

static void write_stderr(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0) {
        /* There is nobody else to tell. */
    }
}

/* Handlers of the parent's are not inherited; what it ignores and blocks is. */
G_NORETURN void cuda_worker_become(const struct cuda_worker *worker, char **environment,
                                   pid_t parent, int fd)
{
    char *words[6] = {(char *)"vgpu-cuda-worker", (char *)"--fd", (char *)WORKER_FD_TEXT};
    size_t count = 3;
    sigset_t none;

    if (worker->is_confined)
        words[count++] = (char *)"--confined";
    if (worker->is_of_vm)
        words[count++] = (char *)"--vm";
    /* What was not opened to be closed on exec: the parent's device, a library's files. */
    close_range(WORKER_FD + 1, ~0u, CLOSE_RANGE_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (fd == WORKER_FD ? fcntl(fd, F_SETFD, 0) == 0 : dup2(fd, WORKER_FD) == WORKER_FD)
        execve(worker->path, words, environment);
    write_stderr("cannot run ");
    write_stderr(worker->path);
    write_stderr(": ");
    write_stderr(strerrordesc_np(errno));
    write_stderr("\n");
    _exit(EXIT_FAILURE);
}

int cuda_worker_start(const struct cuda_worker *worker, char **environment, pid_t *pid)
{
    pid_t parent = getpid();
    int ends[2], saved;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    *pid = fork();
    if (*pid == 0)
        cuda_worker_become(worker, environment, parent, ends[1]);
    saved = errno;
    close(ends[1]);
    if (*pid > 0)
        return ends[0];
    close(ends[0]);
    errno = saved;
    return -1;
}
