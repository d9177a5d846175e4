// SPDX-License-Identifier: MIT
/* A worker for each program that connects to a socket. */
#include "control_loop.h"
#include "worker.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define WORKER_FD 3

extern char **environ;

/* Bound under another name and renamed, so that nobody finds it before it listens. -1: errno. */
static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", path) >=
        (int)sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    unlink(address.sun_path);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) ||
        chmod(address.sun_path, 0666) || listen(fd, SOMAXCONN) || rename(address.sun_path, path))
        return -1;
    return fd;
}

/* In a process of its own from the beginning: the program's variables are set in it, and CUDA does
 * not live through fork(). */
static bool start_worker(int fd, const char *library)
{
    char number[16];
    char *argv[] = {"vgpu-cuda-worker", "--fd", number, "--library", (char *)library, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int error;

    snprintf(number, sizeof(number), "%d", WORKER_FD);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, WORKER_FD);
    error = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        worker_say("cannot start a worker: %s", strerror(error));
    return !error;
}

int control_listen(const char *path, const char *library)
{
    int listening = listen_at(path);

    if (listening < 0) {
        worker_say("cannot listen at %s: %s", path, strerror(errno));
        return 1;
    }
    signal(SIGCHLD, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    for (;;) {
        int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0 && errno != EINTR && errno != ECONNABORTED) {
            worker_say("cannot accept: %s", strerror(errno));
            return 1;
        }
        if (fd < 0)
            continue;
        start_worker(fd, library);
        close(fd);
    }
}
