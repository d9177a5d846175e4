// SPDX-License-Identifier: MIT
/*
 * With FAKE_CUDA_PROBE=1 this library tries, when it is loaded, what a process that it is in must
 * not be able to do, and says in the worker's log what it could. So a worker of a slice is tried
 * from inside, with all that confines it.
 */
#include "card.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <netinet/in.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A confined worker has its own log there; what a driver prints goes nowhere. */
#define LOG 100

static void say(const char *what, const char *name, int could)
{
    dprintf(LOG, "probe: %s %s: %s\n", what, name, could ? "ALLOWED" : strerror(errno));
}

static void run(const char *path)
{
    char *argv[] = {(char *)path, NULL};
    pid_t pid;
    int error = posix_spawn(&pid, path, NULL, NULL, argv, NULL);

    if (!error)
        waitpid(pid, NULL, 0);
    errno = error;
    say("run", path, !error);
}

static void try_open(const char *what, const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);

    say(what, path, fd >= 0);
    if (fd >= 0)
        close(fd);
}

static void try_all(const char *what, const char *pattern, int flags)
{
    glob_t found;

    if (glob(pattern, GLOB_NOSORT, NULL, &found))
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        try_open(what, found.gl_pathv[i], flags);
    globfree(&found);
}

static void try_socket(const char *name, int domain, int type)
{
    int fd = socket(domain, type, 0);

    say("socket", name, fd >= 0);
    if (fd >= 0)
        close(fd);
}

__attribute__((constructor)) static void probe(void)
{
    char parent[64];

    if (!card_setting("FAKE_CUDA_PROBE", 0))
        return;
    snprintf(parent, sizeof(parent), "/proc/%d/mem", (int)getppid());
    run("/usr/bin/true");
    run("/usr/lib/mdev-vgpu/vgpu-cuda-worker");
    run("/usr/libexec/virgl_render_server");
    try_open("make", "/run/vgpu/probe", O_RDWR | O_CREAT);
    try_open("make", "/tmp/probe", O_RDWR | O_CREAT);
    try_open("make", "/dev/shm/probe", O_RDWR | O_CREAT);
    try_all("open", "/dev/dri/*", O_RDWR);
    try_open("open", "/dev/udmabuf", O_RDWR);
    try_open("open", "/dev/kvm", O_RDWR);
    try_open("open", "/etc/passwd", O_RDONLY);
    try_open("open", "/home", O_RDONLY);
    try_open("open", "/var", O_RDONLY);
    try_open("open", parent, O_RDWR);
    try_socket("inet", AF_INET, SOCK_STREAM);
    try_socket("netlink", AF_NETLINK, SOCK_RAW);
    say("trace", "the guard", ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) == 0);
    say("become", "root", setuid(0) == 0);
    /* This is not seen. */
    puts("probe: ALLOWED to print");
    fputs("probe: ALLOWED to print errors\n", stderr);
    dprintf(LOG, "probe: ended\n");
}
